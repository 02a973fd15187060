// Counts the open streams of reports: without one, no report is acknowledged.
import { EventEmitter, once } from 'node:events'

export type OpenStreams = {
  /** Returns the function to call when the stream is closed. */
  add(): () => void
  /** Resolves when no stream is open. Rejects when the signal aborts. */
  waitUntilNone(signal: AbortSignal): Promise<void>
}

export function createOpenStreams(): OpenStreams {
  const events = new EventEmitter<{ none: [] }>().setMaxListeners(0)
  let count = 0
  return {
    add() {
      count += 1
      return () => {
        count -= 1
        if (count === 0) events.emit('none')
      }
    },
    async waitUntilNone(signal) {
      if (count > 0) await once(events, 'none', { signal })
    },
  }
}
