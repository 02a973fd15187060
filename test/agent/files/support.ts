// Serves only the file routes over HTTP, with a temporary home directory.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { CredentialFiles } from '../../../agent/files/credential-files.ts'
import type { ReadLimits } from '../../../agent/files/read.ts'
import { fileRoutes } from '../../../agent/files/routes.ts'
import type { TransferDialer } from '../../../agent/files/transfer-dialer.ts'
import { createJsonRouter, type JsonRouter } from '../../../agent/requests/json-routes.ts'
import type { Clock } from '../../../shared/clock.ts'
import { serveRoutes } from '../../support/agent-routes.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { silentLog } from '../../support/tunnel.ts'

type Test = { teardown(fn: () => unknown): void }

/** Of a client that may run commands. */
export const NO_LIMITS: ReadLimits = { stateDir: '/nonexistent', credentials: null }

export type FileServer = {
  router: JsonRouter
  home: string
  stateDir: string
  url: string
  port: number
  credentialFiles: CredentialFiles
}
type Options = {
  /** Default: the HTTP request is the connection. */
  transferDialer?: TransferDialer
  clock?: Clock
  activity?: { touch(): void }
}

export async function serveFiles(t: Test, options: Options = {}): Promise<FileServer> {
  const home = createTempDir(t, 'files')
  const stateDir = join(home, '.state')
  const credentialFiles = new CredentialFiles(home)
  const { close, router, port, url } = await serveRoutes((transferDialer) => {
    const router = createJsonRouter()
    fileRoutes(router, {
      home,
      stateDir,
      credentialFiles,
      log: silentLog,
      transferDialer: options.transferDialer ?? transferDialer,
      activity: options.activity ?? { touch: () => undefined },
      ...(options.clock && { clock: options.clock }),
    })
    return router
  })
  t.teardown(close)
  return { router, home, stateDir, credentialFiles, port, url }
}

/** serveFiles for a process that is not a tap test. `close` stops the server and removes the home directory. */
export async function serveFilesStandalone(): Promise<FileServer & { close(): Promise<void> }> {
  const cleanup = new AsyncDisposableStack()
  const server = await serveFiles({ teardown: (fn) => cleanup.defer(async () => void (await fn())) })
  return { ...server, close: () => cleanup.disposeAsync() }
}

/** The status, code and message of an error response. */
export async function readError(
  response: Response,
): Promise<{ status: number; code: string; message: string }> {
  const { error } = (await response.json()) as { error: { code: string; message: string } }
  return { status: response.status, ...error }
}

export const query = (path: string): string => `?path=${encodeURIComponent(path)}`

export const listNames = async (dir: string): Promise<string[]> => (await readdir(dir)).sort()

/** A body that yields `chunks` and then awaits `onEnd`, which may resolve, reject or stay pending. */
export async function* createBody(chunks: readonly Buffer[], onEnd: () => Promise<void>) {
  yield* chunks
  await onEnd()
}
