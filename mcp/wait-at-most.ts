// Limits how long a call waits for a change, which continues after that.

/** @returns null: the time was over first. Rejects with the reason of the signal when it is aborted */
export async function waitAtMost<T>(
  ms: number,
  signal: AbortSignal,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const timer = new AbortController()
  const timeout = setTimeout(() => timer.abort(), ms)
  try {
    return await wait(AbortSignal.any([signal, timer.signal]))
  } catch (error) {
    signal.throwIfAborted()
    if (error === timer.signal.reason) return null
    throw error
  } finally {
    clearTimeout(timeout)
  }
}
