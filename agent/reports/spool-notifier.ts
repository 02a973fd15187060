// Notifies the readers and writers of the spool: readers wait for a new report, writers for free space or for an acknowledgement.
import { EventEmitter } from 'node:events'

export type SpoolNotifier = {
  /** @param urgent whether readers are notified without a delay */
  notifyAppended(urgent: boolean): void
  notifySpace(): void
  /** Resolves after the next report: immediately if it is urgent, else after COALESCE_MS. Rejects when the signal aborts. */
  waitForReport(signal: AbortSignal): Promise<void>
  /** Resolves when `hasSpace` is true, checked now and after each notifySpace. Rejects when the signal aborts. */
  waitForSpace(signal: AbortSignal, hasSpace: () => boolean): Promise<void>
}

/** Short commands produce bursts of reports: those within this time are sent and committed as one batch. */
const COALESCE_MS = 100

export function createSpoolNotifier(): SpoolNotifier {
  const events = new EventEmitter<{ appended: [urgent: boolean]; space: [] }>().setMaxListeners(0)

  /**
   * Rejects when the signal aborts. `subscribe` gets the function that resolves the promise and returns the function that
   * unsubscribes.
   */
  const waitForEvent = (signal: AbortSignal, subscribe: (resolve: () => void) => () => void) =>
    new Promise<void>((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const settle = (settlePromise: () => void) => {
        unsubscribe()
        signal.removeEventListener('abort', onAbort)
        settlePromise()
      }
      const onAbort = () => settle(() => reject(signal.reason))
      const unsubscribe = subscribe(() => settle(resolve))
      signal.addEventListener('abort', onAbort, { once: true })
    })

  return {
    notifyAppended: (urgent) => void events.emit('appended', urgent),
    notifySpace: () => void events.emit('space'),
    waitForReport: (signal) =>
      waitForEvent(signal, (resolve) => {
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
    async waitForSpace(signal, hasSpace) {
      signal.throwIfAborted()
      if (hasSpace()) return
      await waitForEvent(signal, (resolve) => {
        const onSpace = () => {
          if (hasSpace()) resolve()
        }
        events.on('space', onSpace)
        return () => void events.off('space', onSpace)
      })
    },
  }
}
