// Requests a value once a second. The API has no events for boxes. Survives an outage of the coordinator.
import { setTimeout as sleep } from 'node:timers/promises'
import { CliError, EXIT } from '../exit-codes.ts'

const INTERVAL_MS = 1000
const MAX_BACKOFF_MS = 5000

export type PollOptions<T> = {
  signal: AbortSignal
  request(): Promise<T>
  onResult(result: T): void
  /** Called for the first failed request after a successful one. */
  onOutage(reason: string): void
}

/**
 * Never resolves.
 * @throws CliError when the first request fails, or a later one in a way that a retry cannot help; the signal's reason
 */
export async function poll<T>({ signal, request, onResult, onOutage }: PollOptions<T>): Promise<never> {
  let isFirst = true
  for (let failures = 0; ; ) {
    try {
      onResult(await request())
      failures = 0
      isFirst = false
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (isFirst || !(error instanceof CliError) || !isTemporary(error)) throw error
      if (failures === 0) onOutage(error.message)
      failures = Math.min(failures + 1, 10)
    }
    const backoff = Math.min(MAX_BACKOFF_MS, INTERVAL_MS * 2 ** failures)
    // Jitter: clients that were disconnected together should not retry together.
    const delay = failures === 0 ? INTERVAL_MS : backoff * (0.5 + Math.random() / 2)
    await sleep(delay, undefined, { signal }).catch((error) => {
      throw signal.aborted ? signal.reason : error
    })
  }
}

/** An error without a code comes from a proxy, for example while the coordinator restarts. */
const isTemporary = ({ code, exitCode }: CliError): boolean =>
  exitCode === EXIT.unreachable || code === null || code === 'rate_limited' || code === 'internal_error'
