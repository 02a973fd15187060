// Timers, passed as a parameter so that tests control the time.

/** Calls `fn` after `ms`. Returns a function that cancels the timer. */
export type SetTimer = (fn: () => void, ms: number) => () => void

/** Does not keep the process running. */
export const setSystemTimer: SetTimer = (fn, ms) => {
  const timeout = setTimeout(fn, ms)
  timeout.unref()
  return () => clearTimeout(timeout)
}
