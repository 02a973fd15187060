// The sampler: one timer of one second, which runs all tasks that measure the box at aligned times.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'

export type SamplerTask = {
  name: string
  /** The task runs at multiples of this, since the epoch. */
  everySeconds: number
  /** @param at the multiple, in milliseconds since the epoch: a late timer does not change it */
  run(at: number): void | Promise<void>
}

export type Sampler = {
  add(task: SamplerTask): void
  /** Stops the timer and waits for the running tasks. */
  close(): Promise<void>
}

export type SamplerOptions = {
  /** The coordinator's time, where it is known. */
  clock: Clock
  log: Logger
  /** Milliseconds of a clock that is never set. May stand still while the box is frozen. */
  monotonicNow?: () => number
  /** Resolves after the delay; rejects when the signal aborts. */
  wait?: (ms: number, signal: AbortSignal) => Promise<unknown>
}

/**
 * A larger difference between the two clocks means that the clock was set, that the machine was suspended, or that the box
 * was frozen.
 */
const CLOCK_JUMP_MS = 1500

/** The timer keeps the process alive until close(). */
const waitForTimer = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal })

type ScheduledTask = SamplerTask & {
  /** The last multiple that was handled. */
  handled: number
  running: Promise<void> | undefined
  isFailing: boolean
}

export function createSampler(options: SamplerOptions): Sampler {
  const { clock, log, monotonicNow = () => performance.now(), wait = waitForTimer } = options
  const tasks: ScheduledTask[] = []
  const closing = new AbortController()
  let last = { now: clock.now(), monotonic: monotonicNow() }

  /** The last multiple of the task's interval, in milliseconds. */
  const lastDue = ({ everySeconds }: SamplerTask, now: number) => now - (now % (everySeconds * 1000))

  async function runTask(task: ScheduledTask, at: number): Promise<void> {
    try {
      await task.run(at)
      task.isFailing = false
    } catch (error) {
      // The error is logged once until the task succeeds again: it runs up to every second.
      if (!task.isFailing) log.warn({ err: error, task: task.name }, 'failed to measure the box; will retry')
      task.isFailing = true
    }
  }

  function runDueTasks(): void {
    const current = { now: clock.now(), monotonic: monotonicNow() }
    const jump = current.now - last.now - (current.monotonic - last.monotonic)
    last = current
    for (const task of tasks) {
      const due = lastDue(task, current.now)
      if (due === task.handled) continue
      task.handled = due
      // After a jump the task waits for its next multiple: the last one is not when the time passed.
      if (Math.abs(jump) > CLOCK_JUMP_MS && task.everySeconds > 1) continue
      task.running ??= runTask(task, due).finally(() => {
        task.running = undefined
      })
    }
  }

  async function runUntilClosed(): Promise<void> {
    while (!closing.signal.aborted) {
      await wait(1000 - (clock.now() % 1000), closing.signal).catch(() => undefined)
      if (!closing.signal.aborted) runDueTasks()
    }
  }
  const stopped = runUntilClosed()

  return {
    add(task) {
      tasks.push({ ...task, handled: lastDue(task, clock.now()), running: undefined, isFailing: false })
    },
    async close() {
      closing.abort()
      await stopped
      await Promise.all(tasks.map(({ running }) => running))
    },
  }
}
