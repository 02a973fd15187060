// Waits for a promise with a time limit, and until a signal aborts. Releases the timer and the listeners.

/** @param ms null: no time limit. @param promise must not reject */
export async function boundedWait(
  promise: Promise<unknown>,
  ms: number | null,
  signals: readonly AbortSignal[],
): Promise<void> {
  if (signals.some(({ aborted }) => aborted)) return
  const { promise: stopped, resolve } = Promise.withResolvers<void>()
  const stop = () => resolve()
  const timer = ms === null ? undefined : setTimeout(stop, ms)
  for (const signal of signals) signal.addEventListener('abort', stop)
  await Promise.race([promise, stopped])
  clearTimeout(timer)
  for (const signal of signals) signal.removeEventListener('abort', stop)
}
