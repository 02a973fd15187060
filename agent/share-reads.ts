// Combines concurrent reads of a state that changes.

/** Callers during a read share the next one: it starts after each of them has called. */
export function shareReads<T>(read: () => Promise<T>): () => Promise<T> {
  let current: Promise<unknown> = Promise.resolve()
  let next: Promise<T> | undefined
  return () => {
    next ??= current
      .catch(() => undefined)
      .then(() => {
        const started = read()
        current = started
        next = undefined
        return started
      })
    return next
  }
}
