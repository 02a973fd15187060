// Lets the engine download an image, with the credentials of the docker command.
import type { PullProgress } from '../../../../shared/api/images.ts'
import { EngineStatusError } from '../../engine-http/errors.ts'
import type { Engine } from '../engine.ts'
import { describePullFailure } from './pull-errors.ts'
import { type PullLine, PullProgressReader } from './pull-progress.ts'
import { parseReference, shortenReference } from './reference.ts'
import { readRegistryCredentials } from './registry-credentials.ts'

export type DownloadOptions = {
  /** The variables that say where the configuration of the docker command is. Default: those of this process. */
  env?: NodeJS.ProcessEnv | undefined
  onProgress(progress: PullProgress): void
  signal: AbortSignal
  /** How long the engine may report no progress while it waits for the registry. Default: 5 minutes. */
  idleTimeoutMs?: number | undefined
}

const IDLE_TIMEOUT_MS = 5 * 60_000

/**
 * Resolves with the state of the layers when the engine has ended the download. Throws ImageError, and another error when a retry
 * may help.
 */
export async function downloadImage(
  { http }: Pick<Engine, 'http'>,
  normalized: string,
  { env, onProgress, signal, idleTimeoutMs = IDLE_TIMEOUT_MS }: DownloadOptions,
): Promise<PullProgressReader> {
  const { domain, path, tag, digest } = parseReference(normalized)
  const reference = shortenReference(normalized)
  const credentials = await readRegistryCredentials(domain, env)
  const progress = new PullProgressReader()
  const stall = new AbortController()
  const timer = setTimeout(() => {
    // Podman reports nothing while it unpacks layers, which can take long.
    if (progress.isTransferred()) return
    const reason = `The download of the image ${reference} made no progress for ${idleTimeoutMs / 1000} s.`
    stall.abort(new Error(reason))
  }, idleTimeoutMs)
  try {
    const lines = http.lines<PullLine>({
      method: 'POST',
      path: '/images/create',
      query: { fromImage: `${domain}/${path}`, tag: digest ?? tag ?? 'latest' },
      ...(credentials !== undefined && { headers: { 'x-registry-auth': credentials } }),
      // The engine ends a download that no client waits for.
      signal: AbortSignal.any([signal, stall.signal]),
      // The engine answers when the registry has answered.
      timeoutMs: null,
    })
    for await (const line of lines) {
      timer.refresh()
      const problem = line.errorDetail?.message ?? line.error
      if (problem !== undefined) throw describePullFailure(reference, problem)
      if (progress.add(line)) onProgress(progress.read())
    }
  } catch (error) {
    if (error instanceof EngineStatusError) throw describePullFailure(reference, error.reason, error)
    throw error
  } finally {
    clearTimeout(timer)
  }
  return progress
}
