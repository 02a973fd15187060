// What the command history may hold: records by age and by number, output by size. In small transactions.
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import { commandsBefore, dropOutput, removeCommands, sizesOf } from './retained.ts'

export type CommandRetention = {
  /** From the request on. A command that still runs stays. */
  days: number
  /** Of one box. */
  records: number
  /** Of one box, all its records together. */
  outputBytes: number
}

export type CommandPruner = {
  /** The box has so many records and bytes of output more. */
  grew(boxId: string, records: number, outputBytes: number): void
  /** Removes what is too old anywhere, and too much of boxes that grew. Returns how many records went. */
  prune(): Promise<number>
  /** Ends after what runs now. */
  close(): Promise<void>
}

const DAY_MS = 24 * 60 * 60 * 1000
/** Records in one transaction. */
const AT_ONCE = 50
/** A box is looked at when it grew by this part of what it may hold: so it holds at most so much more. */
const TOLERANCE = 1 / 8

type Growth = { records: number; outputBytes: number }

export function createCommandPruner(options: {
  db: Db
  clock: Clock
  retention: CommandRetention
  onError(error: unknown): void
}): CommandPruner {
  const { db, clock, retention, onError } = options
  const growth = new Map<string, Growth>()
  let work: Promise<unknown> = Promise.resolve()
  let closed = false

  function grew(boxId: string, records: number, outputBytes: number): void {
    const sum = growth.get(boxId) ?? { records: 0, outputBytes: 0 }
    growth.set(boxId, sum)
    sum.records += records
    sum.outputBytes += outputBytes
    const much =
      sum.records >= retention.records * TOLERANCE || sum.outputBytes >= retention.outputBytes * TOLERANCE
    if (!much) return
    growth.delete(boxId)
    work = work.then(() => pruneBox(boxId)).catch(onError)
  }

  async function inBatches(ids: readonly string[], change: typeof removeCommands): Promise<void> {
    for (let from = 0; from < ids.length && !closed; from += AT_ONCE) {
      await transaction(db, (trx) => change(trx, ids.slice(from, from + AT_ONCE)))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** Newest first, what runs included; but only what has ended goes. */
  async function pruneBox(boxId: string): Promise<number> {
    if (closed) return 0
    const rows = await sizesOf(db, boxId)
    const removed: string[] = []
    const emptied: string[] = []
    let outputBytes = 0
    for (const [index, row] of rows.entries()) {
      const kept = row.stdout_bytes - row.stdout_start + row.stderr_bytes - row.stderr_start
      const size = row.output_kept ? kept : 0
      outputBytes += size
      if (row.status === 'running') continue
      if (index >= retention.records) removed.push(row.id)
      else if (outputBytes > retention.outputBytes && size > 0) emptied.push(row.id)
    }
    await inBatches(removed, removeCommands)
    await inBatches(emptied, dropOutput)
    return removed.length
  }

  async function pruneOld(): Promise<number> {
    const before = clock.now() - retention.days * DAY_MS
    for (let removed = 0; ; ) {
      const ids = (await commandsBefore(db, before, AT_ONCE)).map(({ id }) => id)
      await inBatches(ids, removeCommands)
      removed += ids.length
      if (ids.length < AT_ONCE || closed) return removed
    }
  }

  return {
    grew,
    prune() {
      const boxIds = [...growth.keys()]
      growth.clear()
      const done = work.then(async () => {
        let removed = await pruneOld()
        for (const boxId of boxIds) removed += await pruneBox(boxId)
        return removed
      })
      work = done.catch(() => undefined)
      return done
    },
    async close() {
      closed = true
      await work
    },
  }
}
