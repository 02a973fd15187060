// Limits the event streams of all tabs together: over HTTP/1.1 a browser has six connections to a host, and a stream takes one.

/** The other connections are for requests. */
const MAX_STREAMS = 3

/** Returns the function that frees the slot. Null: the other tabs have all slots, and the caller polls. */
export type AcquireStream = () => Promise<(() => void) | null>

/** @param locks undefined: pages from another machine over plain HTTP have none, and no limit */
export const createStreamSlots =
  (locks: Pick<LockManager, 'request'> | undefined): AcquireStream =>
  async () => {
    if (locks === undefined) return () => undefined
    for (let slot = 0; slot < MAX_STREAMS; slot += 1) {
      const release = await acquireLock(locks, `boxwood.stream.${slot}`)
      if (release !== null) return release
    }
    return null
  }

/** The browser frees the lock of a tab that is closed. Null: another tab has the lock. */
const acquireLock = (locks: Pick<LockManager, 'request'>, name: string): Promise<(() => void) | null> =>
  new Promise((resolve, reject) => {
    locks
      .request(name, { ifAvailable: true }, (lock) => {
        if (lock !== null) return new Promise<void>((release) => resolve(release))
        resolve(null)
        return undefined
      })
      .catch(reject)
  })

export const acquireStream: AcquireStream = () => createStreamSlots(navigator.locks)()
