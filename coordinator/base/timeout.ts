// Bounds how long a promise is waited for.

/** Rejects with an Error with this message when the promise is not settled after `ms`. The work itself continues. */
export async function withTimeout<T>(promise: Promise<T>, ms: number, message: string): Promise<T> {
  const { promise: expired, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(message)), ms)
  try {
    return await Promise.race([promise, expired])
  } finally {
    clearTimeout(timer)
  }
}
