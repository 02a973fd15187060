// A connection that breaks and comes back: how long to wait in between, and a sentence when it takes long.
import { setTimeout as sleep } from 'node:timers/promises'

export type Patience = {
  /** The connection is gone, or was not to be had. */
  broke(why: string): void
  /** There is a connection; whether it lasts is to be seen. */
  attached(): void
  /** Something came: it is the connection it was. */
  progressed(): void
  /** Until the next attempt, at least `seconds` when the other side asked for that. Rejects once `signal` is raised. */
  wait(seconds: number | null): Promise<void>
  close(): void
}

export type PatienceOptions = {
  signal: AbortSignal
  /** Told of a break that lasts, and of its end. */
  onLong(why: string): void
  onAgain(): void
}

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 5000
const LONG_MS = 3000
/** One that is cut again before, and on which nothing came, has not come back. */
const LASTS_MS = 1000

export function createPatience({ signal, onLong, onAgain }: PatienceOptions): Patience {
  let attempts = 0
  let reason = ''
  let told = false
  let long: NodeJS.Timeout | undefined
  let lasts: NodeJS.Timeout | undefined

  function progressed(): void {
    attempts = 0
    if (long === undefined) return
    clearTimeout(long)
    long = undefined
    if (told) onAgain()
    told = false
  }

  return {
    broke(why) {
      clearTimeout(lasts)
      reason = why
      long ??= setTimeout(() => {
        told = true
        onLong(reason)
      }, LONG_MS).unref()
    },
    attached() {
      lasts = setTimeout(progressed, LASTS_MS).unref()
    },
    progressed,
    async wait(seconds) {
      // Full jitter: all who were cut off would come back at the same moment.
      const pause = Math.random() * Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempts)
      attempts = Math.min(attempts + 1, 10)
      await sleep((seconds ?? 0) * 1000 + pause, undefined, { signal })
    },
    close() {
      clearTimeout(long)
      clearTimeout(lasts)
    },
  }
}
