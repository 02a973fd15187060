// A wall clock, a monotonic clock and a timer for tests of the sampler. Time passes only in advance().
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'

export function createFakeTime(startMs: number) {
  let wall = startMs
  let monotonic = 0
  let timers: { at: number; resolve: () => void }[] = []

  /** Lets the sampler start its tasks and its next timer. */
  const settle = async () => {
    for (let i = 0; i < 3; i++) await yieldToEventLoop()
  }
  const fireTimers = async () => {
    const due = timers.filter(({ at }) => at <= monotonic)
    timers = timers.filter(({ at }) => at > monotonic)
    for (const { resolve } of due) resolve()
    await settle()
  }

  return {
    clock: { now: () => wall },
    monotonicNow: () => monotonic,
    wait: (ms: number, signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        timers.push({ at: monotonic + ms, resolve })
        signal.addEventListener('abort', () => resolve(), { once: true })
      }),
    /** Time passes, and each timer fires in time. */
    async advance(ms: number) {
      await settle()
      for (const end = monotonic + ms; ; ) {
        const next = Math.min(end, ...timers.map(({ at }) => at))
        wall += next - monotonic
        monotonic = next
        await fireTimers()
        if (monotonic === end && timers.every(({ at }) => at > end)) return
      }
    },
    /** Time passes while the process is stopped: the timer fires late, once. */
    async block(ms: number) {
      await settle()
      wall += ms
      monotonic += ms
      await fireTimers()
    },
    /** The clock is set, or the machine was suspended for that time. */
    jump(ms: number) {
      wall += ms
    },
  }
}
