// A clock that stands still while the processes of the box are frozen or paused. The kernel does not notify them: a timer
// that is late by more than a second shows it.
import type { Clock } from '../shared/clock.ts'

/** Calls back after `ms` of running time. Returns the function that stops the timer. */
export type StartTimer = (callback: () => void, ms: number) => () => void

export type RunningClock = Clock & {
  startTimer: StartTimer
  /** Calls back after each time that the processes did not run, with its length. Returns the unsubscribe function. */
  onThaw(listener: (frozenMs: number) => void): () => void
  close(): void
}

/** Default of functions that get a StartTimer. */
export const startWallTimer: StartTimer = (callback, ms) => {
  const timer = setTimeout(callback, ms)
  return () => clearTimeout(timer)
}

const TICK_MS = 1000

/** @param monotonicNow milliseconds of a clock that is never set and continues while processes are frozen */
export function createRunningClock(monotonicNow: () => number = () => performance.now()): RunningClock {
  const listeners = new Set<(frozenMs: number) => void>()
  let last = monotonicNow()
  let elapsedMs = 0

  function now(): number {
    const current = monotonicNow()
    const delta = current - last
    last = current
    if (delta <= 2 * TICK_MS) {
      elapsedMs += delta
      return elapsedMs
    }
    elapsedMs += TICK_MS
    for (const listener of listeners) listener(delta - TICK_MS)
    return elapsedMs
  }
  const ticks = setInterval(now, TICK_MS).unref()

  return {
    now,
    startTimer(callback, ms) {
      const endsAt = now() + ms
      let timer: NodeJS.Timeout
      const wait = () => {
        const remainingMs = endsAt - now()
        // A timer of Node may fire a fraction of a millisecond early.
        if (remainingMs < 1) callback()
        else timer = setTimeout(wait, remainingMs)
      }
      timer = setTimeout(wait, ms)
      return () => clearTimeout(timer)
    },
    onThaw(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close: () => clearInterval(ticks),
  }
}
