// Time as the stream needs it: what has passed, and being called later.

export type StreamTime = {
  /** Milliseconds from any moment on; never goes back. */
  now(): number
  /** Calls back once after `ms`. Returns what takes that back. */
  after(ms: number, callback: () => void): () => void
}

export const systemTime: StreamTime = {
  now: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}
