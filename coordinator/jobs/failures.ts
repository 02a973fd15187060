// What the failure of a job means for its retry.
import { getStepRetryDelay } from './backoff.ts'

/**
 * attempt: the failure counts as an attempt. permanent: a retry cannot help. unavailable: what the job needs cannot be reached;
 * the job waits for it, and the failure does not count.
 */
export type FailureKind = 'attempt' | 'permanent' | 'unavailable'

/** How long a job waits at most before it tries again what could not be reached. */
const MAX_UNAVAILABLE_DELAY_MS = 30_000

/** The failed attempts after this failure. */
export const countFailedAttempts = (kind: FailureKind, attempt: number): number =>
  kind === 'unavailable' ? attempt : attempt + 1

/** Whether the job fails. @param attempt failed attempts before this failure */
export const isFinalFailure = (kind: FailureKind, attempt: number, maxAttempts: number): boolean =>
  kind === 'permanent' || countFailedAttempts(kind, attempt) >= maxAttempts

/** The delays before retries. Failures that do not count as attempts are counted in memory. */
export class RetryDelays {
  readonly #backoff: (failures: number) => number
  readonly #unavailable = new Map<string, number>()

  /** @param backoff returns the milliseconds to wait after this number of failures (1 or more) */
  constructor(backoff: (failures: number) => number = getStepRetryDelay) {
    this.#backoff = backoff
  }

  /** Milliseconds until the retry of the job of the target. @param attempt failed attempts before this failure */
  next(id: string, kind: FailureKind, attempt: number): number {
    if (kind !== 'unavailable') {
      this.reset(id)
      return this.#backoff(countFailedAttempts(kind, attempt))
    }
    const failures = (this.#unavailable.get(id) ?? 0) + 1
    this.#unavailable.set(id, failures)
    return Math.min(this.#backoff(failures), MAX_UNAVAILABLE_DELAY_MS)
  }

  /** A step of the job of the target has succeeded. */
  reset(id: string): void {
    this.#unavailable.delete(id)
  }
}
