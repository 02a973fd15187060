// Enforces the retention limits of the command history: records by age and count, output by size.
import type { Clock } from '../../../shared/clock.ts'
import type { Db } from '../../db/open.ts'
import { transaction } from '../../db/transaction.ts'
import { deleteCommands, discardOutput, listCommandSizes, listExpiredCommands } from './retention-store.ts'

export type CommandRetention = {
  /** Counted from the request. The record of a running command stays. */
  days: number
  /** The most records of one box. */
  records: number
  /** The most output of one box, over all its records. */
  outputBytes: number
}

export type CommandPruner = {
  /** Adds to the box's growth since it was last pruned. */
  recordGrowth(boxId: string, records: number, outputBytes: number): void
  /**
   * Prunes the boxes that grew, each on its own, and deletes expired records of all boxes. Returns the number of deleted
   * records.
   */
  prune(): Promise<number>
  /** Resolves when the current work has finished. */
  close(): Promise<void>
}

const DAY_MS = 24 * 60 * 60 * 1000
/** Records per transaction. */
const BATCH_SIZE = 50
/** A box is pruned when it grew by this fraction of a limit, so a limit is exceeded by at most that much. */
const GROWTH_FRACTION = 1 / 8

type Growth = { records: number; outputBytes: number }

export function createCommandPruner(options: {
  db: Db
  clock: Clock
  retention: CommandRetention
  onError(error: unknown, boxId: string): void
}): CommandPruner {
  const { db, clock, retention, onError } = options
  const growth = new Map<string, Growth>()
  let work: Promise<unknown> = Promise.resolve()
  let closed = false

  function recordGrowth(boxId: string, records: number, outputBytes: number): void {
    const sum = growth.get(boxId) ?? { records: 0, outputBytes: 0 }
    growth.set(boxId, sum)
    sum.records += records
    sum.outputBytes += outputBytes
    const shouldPrune =
      sum.records >= retention.records * GROWTH_FRACTION ||
      sum.outputBytes >= retention.outputBytes * GROWTH_FRACTION
    if (!shouldPrune) return
    growth.delete(boxId)
    work = work.then(() => tryPruneBox(boxId))
  }

  async function runInBatches(ids: readonly string[], change: typeof deleteCommands): Promise<void> {
    for (let from = 0; from < ids.length && !closed; from += BATCH_SIZE) {
      await transaction(db, (trx) => change(trx, ids.slice(from, from + BATCH_SIZE)))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** Running commands count towards the limits, but are not pruned. */
  async function pruneBox(boxId: string): Promise<number> {
    if (closed) return 0
    const rows = await listCommandSizes(db, boxId)
    const toDelete: string[] = []
    const toEmpty: string[] = []
    let outputBytes = 0
    for (const [index, row] of rows.entries()) {
      const retainedBytes = row.stdout_bytes - row.stdout_start + row.stderr_bytes - row.stderr_start
      const size = row.output_kept ? retainedBytes : 0
      outputBytes += size
      if (row.status === 'running') continue
      if (index >= retention.records) toDelete.push(row.id)
      else if (outputBytes > retention.outputBytes && size > 0) toEmpty.push(row.id)
    }
    await runInBatches(toDelete, deleteCommands)
    await runInBatches(toEmpty, discardOutput)
    return toDelete.length
  }

  /** A failure does not affect other boxes. The next prune() retries. */
  async function tryPruneBox(boxId: string): Promise<number> {
    try {
      return await pruneBox(boxId)
    } catch (error) {
      onError(error, boxId)
      if (!growth.has(boxId)) growth.set(boxId, { records: 0, outputBytes: 0 })
      return 0
    }
  }

  async function deleteExpired(): Promise<number> {
    const before = clock.now() - retention.days * DAY_MS
    for (let deleted = 0; ; ) {
      const ids = (await listExpiredCommands(db, before, BATCH_SIZE)).map(({ id }) => id)
      await runInBatches(ids, deleteCommands)
      deleted += ids.length
      if (ids.length < BATCH_SIZE || closed) return deleted
    }
  }

  return {
    recordGrowth,
    prune() {
      const boxIds = [...growth.keys()]
      growth.clear()
      const pruned = work.then(async () => {
        let deleted = 0
        for (const boxId of boxIds) deleted += await tryPruneBox(boxId)
        return deleted + (await deleteExpired())
      })
      work = pruned.catch(() => undefined)
      return pruned
    },
    async close() {
      closed = true
      await work
    },
  }
}
