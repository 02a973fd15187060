// Commands whose reports are not committed yet, so that readers of the history can wait for their records.

export type PendingRecord = {
  /** The box confirmed the command: readers of the history now wait for its record. */
  confirm(): void
  /** Stops waiting: there will be no record, or the client got an error. */
  cancel(): void
}

export type PendingRecords = {
  /**
   * Call before the request is sent to the box: its reports may be committed before its response arrives.
   * @param until the state of the command when the response is sent
   */
  add(boxId: string, commandId: string, until: 'start' | 'exit'): PendingRecord
  markCommitted(boxId: string, commands: readonly { commandId: string; hasExited: boolean }[]): void
  /**
   * Resolves when the records of all commands confirmed so far, or of `commandId` only, are committed, or after `ms`
   * milliseconds.
   */
  waitForCommit(boxId: string, ms: number, commandId?: string): Promise<void>
}

/** Bounds the memory for a box that confirms commands and never reports them. */
const MAX_PENDING_PER_BOX = 128
/** A record that is not committed by then is not waited for any more. */
const MAX_PENDING_MS = 15_000

type Entry = { confirmedAt: number | null; until: 'start' | 'exit' }
type Waiter = { missing: Set<string>; finish(): void }

/** @param now a monotonic clock in milliseconds */
export function createPendingRecords(now: () => number = () => performance.now()): PendingRecords {
  const boxes = new Map<string, Map<string, Entry>>()
  const waiters = new Map<string, Set<Waiter>>()

  function remove(boxId: string, commandId: string): void {
    const entries = boxes.get(boxId)
    if (!entries?.delete(commandId)) return
    if (entries.size === 0) boxes.delete(boxId)
    for (const waiter of [...(waiters.get(boxId) ?? [])]) {
      waiter.missing.delete(commandId)
      if (waiter.missing.size === 0) waiter.finish()
    }
  }

  return {
    add(boxId, commandId, until) {
      const entries = boxes.get(boxId) ?? new Map<string, Entry>()
      boxes.set(boxId, entries)
      entries.set(commandId, { confirmedAt: null, until })
      const [oldest] = entries.keys()
      if (entries.size > MAX_PENDING_PER_BOX && oldest !== undefined) remove(boxId, oldest)
      return {
        confirm() {
          const entry = entries.get(commandId)
          if (entry) entry.confirmedAt = now()
        },
        cancel: () => remove(boxId, commandId),
      }
    },
    markCommitted(boxId, commands) {
      const entries = boxes.get(boxId)
      if (entries === undefined) return
      for (const { commandId, hasExited } of commands)
        if (hasExited || entries.get(commandId)?.until === 'start') remove(boxId, commandId)
    },
    async waitForCommit(boxId, ms, commandId) {
      const missing = new Set<string>()
      for (const [id, { confirmedAt }] of [...(boxes.get(boxId) ?? [])]) {
        if (confirmedAt === null || (commandId !== undefined && commandId !== id)) continue
        if (now() - confirmedAt > MAX_PENDING_MS) remove(boxId, id)
        else missing.add(id)
      }
      if (missing.size === 0) return
      const boxWaiters = waiters.get(boxId) ?? new Set()
      waiters.set(boxId, boxWaiters)
      await new Promise<void>((resolve) => {
        const finish = () => {
          clearTimeout(timer)
          boxWaiters.delete(waiter)
          if (boxWaiters.size === 0) waiters.delete(boxId)
          resolve()
        }
        const waiter = { missing, finish }
        const timer = setTimeout(finish, ms)
        boxWaiters.add(waiter)
      })
    },
  }
}
