// Commands whose caller was answered while their reports are still on the way: who reads the history waits for them.

export type Expectation = {
  /** The caller got its answer: from now on the history must have the record. */
  answered(): void
  /** There will be none, or nobody was told. */
  dropped(): void
}

export type ExpectedRecords = {
  /** Before the box is asked. */
  expect(boxId: string, commandId: string): Expectation
  /** The record is committed. */
  arrived(boxId: string, commandIds: readonly string[]): void
  /** Resolves when all that was answered until now, or that one command, has arrived; after `ms` at the latest. */
  settled(boxId: string, ms: number, commandId?: string): Promise<void>
}

/** A box that answers and never reports takes no more memory than this. */
const PER_BOX = 128
/** What has not come by then will not: it is not waited for again. */
const GIVEN_UP_MS = 15_000

type Entry = { answeredAt: number | null }
type Waiter = { missing: Set<string>; done(): void }

export function createExpectedRecords(now: () => number = () => performance.now()): ExpectedRecords {
  const boxes = new Map<string, Map<string, Entry>>()
  const waiters = new Map<string, Set<Waiter>>()

  function forget(boxId: string, commandId: string): void {
    const entries = boxes.get(boxId)
    if (!entries?.delete(commandId)) return
    if (entries.size === 0) boxes.delete(boxId)
    for (const waiter of [...(waiters.get(boxId) ?? [])]) {
      waiter.missing.delete(commandId)
      if (waiter.missing.size === 0) waiter.done()
    }
  }

  return {
    expect(boxId, commandId) {
      const entries = boxes.get(boxId) ?? new Map<string, Entry>()
      boxes.set(boxId, entries)
      entries.set(commandId, { answeredAt: null })
      const [oldest] = entries.keys()
      if (entries.size > PER_BOX && oldest !== undefined) forget(boxId, oldest)
      return {
        answered() {
          const entry = entries.get(commandId)
          if (entry) entry.answeredAt = now()
        },
        dropped: () => forget(boxId, commandId),
      }
    },
    arrived(boxId, commandIds) {
      if (boxes.has(boxId)) for (const id of commandIds) forget(boxId, id)
    },
    async settled(boxId, ms, commandId) {
      const missing = new Set<string>()
      for (const [id, { answeredAt }] of [...(boxes.get(boxId) ?? [])]) {
        if (answeredAt === null || (commandId !== undefined && commandId !== id)) continue
        if (now() - answeredAt > GIVEN_UP_MS) forget(boxId, id)
        else missing.add(id)
      }
      if (missing.size === 0) return
      const waiting = waiters.get(boxId) ?? new Set()
      waiters.set(boxId, waiting)
      await new Promise<void>((resolve) => {
        const done = () => {
          clearTimeout(timer)
          waiting.delete(waiter)
          if (waiting.size === 0) waiters.delete(boxId)
          resolve()
        }
        const waiter = { missing, done }
        const timer = setTimeout(done, ms)
        waiting.add(waiter)
      })
    },
  }
}
