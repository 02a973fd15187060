// Waits for a condition with a deadline, instead of for a time.
import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 10

/**
 * Polls the condition until its result is truthy, and returns that result.
 * @param description completes "timed out waiting until …" @param ms the deadline. Default: 40 s.
 */
export async function waitUntil<T>(
  description: string,
  condition: () => T | Promise<T>,
  ms = 40_000,
): Promise<Exclude<T, false | undefined | null>> {
  for (const deadline = performance.now() + ms; ; await delay(POLL_MS)) {
    const result = await condition()
    if (result) return result as Exclude<T, false | undefined | null>
    if (performance.now() > deadline) throw new Error(`timed out after ${ms} ms waiting until ${description}`)
  }
}
