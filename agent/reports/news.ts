// Who waits for the spool: a reader for the next report, a writer for room.
import { EventEmitter } from 'node:events'

export type News = {
  tellAppended(urgent: boolean): void
  tellRoom(): void
  /** Resolves after the next report: at once for an urgent one, else a little later. Rejects when the signal aborts. */
  appended(signal: AbortSignal): Promise<void>
  /** Resolves when `hasRoom`, looked at now and when room is told of. Rejects when the signal aborts. */
  room(signal: AbortSignal, hasRoom: () => boolean): Promise<void>
}

/** Reports of short commands come in swarms: what waits this long travels, and is committed, as one. */
const COALESCE_MS = 100

export function createNews(): News {
  const events = new EventEmitter<{ appended: [urgent: boolean]; room: [] }>().setMaxListeners(0)

  /** `listen` gets what settles the promise, and returns what ends listening. */
  const untilAborted = (signal: AbortSignal, listen: (resolve: () => void) => () => void) =>
    new Promise<void>((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const settle = (done: () => void) => {
        stop()
        signal.removeEventListener('abort', abort)
        done()
      }
      const abort = () => settle(() => reject(signal.reason))
      const stop = listen(() => settle(resolve))
      signal.addEventListener('abort', abort, { once: true })
    })

  return {
    tellAppended: (urgent) => void events.emit('appended', urgent),
    tellRoom: () => void events.emit('room'),
    appended: (signal) =>
      untilAborted(signal, (resolve) => {
        let timer: NodeJS.Timeout | undefined
        const onAppended = (urgent: boolean) => {
          if (urgent) resolve()
          else timer ??= setTimeout(resolve, COALESCE_MS)
        }
        events.on('appended', onAppended)
        return () => {
          clearTimeout(timer)
          events.off('appended', onAppended)
        }
      }),
    async room(signal, hasRoom) {
      signal.throwIfAborted()
      if (hasRoom()) return
      await untilAborted(signal, (resolve) => {
        const look = () => {
          if (hasRoom()) resolve()
        }
        events.on('room', look)
        return () => void events.off('room', look)
      })
    },
  }
}
