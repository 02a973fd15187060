// Waits for a condition with a deadline, instead of for a time.
import { setTimeout as delay } from 'node:timers/promises'

/** How long a test waits for a condition or a connection: a busy machine may need tens of seconds to start a process. */
export const DEADLINE_MS = 40_000

const MIN_POLL_MS = 10
const MAX_POLL_MS = 100

/** A condition uses at most a fifth of the time. @param conditionMs the duration of the condition */
export const nextPollDelay = (conditionMs: number): number =>
  Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, conditionMs * 4))

/**
 * Polls the condition until its result is truthy, and returns that result.
 * @param description completes "timed out waiting until …" @param ms the deadline. Default: DEADLINE_MS.
 */
export async function waitUntil<T>(
  description: string,
  condition: () => T | Promise<T>,
  ms = DEADLINE_MS,
): Promise<Exclude<T, false | undefined | null>> {
  const startedAt = performance.now()
  for (;;) {
    const checkedAt = performance.now()
    const result = await condition()
    if (result) return result as Exclude<T, false | undefined | null>
    const now = performance.now()
    if (now - startedAt > ms) throw new Error(`timed out after ${ms} ms waiting until ${description}`)
    await delay(nextPollDelay(now - checkedAt))
  }
}
