// Requests a value at intervals. The API has no events for boxes. Survives an outage of the coordinator.
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffDelay, equalJitter } from '../../shared/backoff.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

const DEFAULT_INTERVAL_MS = 1000
const BACKOFF = { baseMs: DEFAULT_INTERVAL_MS, maxMs: 5000 }
/** A request that takes longer is reported as an outage while it continues. */
const SLOW_MS = 5000

export type PollOptions<T> = {
  signal: AbortSignal
  /** The time from a response to the next request. Default: 1000. */
  intervalMs?: number
  slowMs?: number
  request(): Promise<T>
  onResult(result: T): void
  /** Called for the first failed or slow request after a successful one. */
  onOutage(reason: string): void
}

/**
 * Never resolves.
 * @throws CliError when the first request fails, or a later one in a way that a retry cannot help; the signal's reason
 */
export async function poll<T>({
  signal,
  intervalMs = DEFAULT_INTERVAL_MS,
  slowMs = SLOW_MS,
  request,
  onResult,
  onOutage,
}: PollOptions<T>): Promise<never> {
  let isFirst = true
  let isOutage = false
  const reportOutage = (reason: string) => {
    if (isFirst || isOutage) return
    isOutage = true
    onOutage(reason)
  }
  const reportSlow = () => reportOutage('The coordinator does not respond.')
  for (let failures = 0; ; ) {
    const timer = setTimeout(reportSlow, slowMs)
    try {
      const result = await request()
      failures = 0
      isFirst = false
      isOutage = false
      onResult(result)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (isFirst || !(error instanceof CliError) || !isTemporary(error)) throw error
      reportOutage(error.message)
      failures = Math.min(failures + 1, 10)
    } finally {
      clearTimeout(timer)
    }
    // Jitter: clients that were disconnected together should not retry together.
    const delay = failures === 0 ? intervalMs : backoffDelay(failures, BACKOFF, equalJitter)
    await sleep(delay, undefined, { signal }).catch((error) => {
      throw signal.aborted ? signal.reason : error
    })
  }
}

/** An error without a code comes from a proxy, for example while the coordinator restarts. */
const isTemporary = ({ code, exitCode }: CliError): boolean =>
  exitCode === EXIT.unreachable || code === null || code === 'rate_limited' || code === 'internal_error'
