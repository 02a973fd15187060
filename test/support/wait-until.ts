// The deadlines of all tests, and waiting for a condition instead of for a time. The deadlines grow with the time that this
// machine needs to start processes: `npm run check` rejects deadlines in other files.
import { spawnSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'

/** The runner of the suite measures the machine once, and its test files and their processes inherit the result. */
export const SLOWDOWN_VARIABLE = 'BOXWOOD_TEST_SLOWDOWN'

/** A usual machine starts Node once and twenty shells in this time: 30 ms and 20 × 2 ms. */
const USUAL_MS = 70
const MAX_SLOWDOWN = 10

/** How many times slower than a usual machine this one starts processes: 1 to 10. */
export function measureSlowdown(): number {
  const start = performance.now()
  spawnSync(process.execPath, ['-e', '0'])
  for (let i = 0; i < 20; i++) spawnSync('sh', ['-c', 'true'])
  const slowdown = (performance.now() - start) / USUAL_MS
  return Math.min(MAX_SLOWDOWN, Math.max(1, Math.round(slowdown * 10) / 10))
}

process.env[SLOWDOWN_VARIABLE] ??= String(measureSlowdown())
export const SLOWDOWN = Number(process.env[SLOWDOWN_VARIABLE])

/** How long a test waits for a condition, a connection or a response: a busy machine may need tens of seconds to start a process. */
export const DEADLINE_MS = 40_000 * SLOWDOWN

/** For what takes minutes: the start of an engine, the boot of a machine, a download, a transfer of gigabytes. */
export const LONG_DEADLINE_MS = 300_000 * SLOWDOWN

const MIN_POLL_MS = 10
const MAX_POLL_MS = 100

/** A condition uses at most a fifth of the time. @param conditionMs the duration of the condition */
export const nextPollDelay = (conditionMs: number): number =>
  Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, conditionMs * 4))

/**
 * Polls the condition until its result is truthy, and returns that result.
 * @param description completes "timed out waiting until …" @param ms DEADLINE_MS or LONG_DEADLINE_MS
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
