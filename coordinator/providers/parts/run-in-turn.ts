// Work that waits for its turn, and can be aborted while it waits.

/** @param enqueue calls the function when it is its turn */
export function runInTurn<T>(
  enqueue: (work: () => Promise<T>) => Promise<T>,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const stopWaiting = () => reject(signal.reason)
    signal.addEventListener('abort', stopWaiting)
    enqueue(async () => {
      signal.removeEventListener('abort', stopWaiting)
      signal.throwIfAborted()
      return await work()
    }).then(resolve, reject)
  })
}
