// Group commit: applies the reports of many boxes in one transaction, to limit the number of disk syncs.
import type { CommandReportHandler } from '../commands/commands.ts'
import type { Db } from '../db/open.ts'
import { applyReports, type BoxReports } from './agents.ts'

export type ReportQueue = {
  /** Resolves after the commit. Rejects when the reports were not committed; the agent then sends them again. */
  apply(reports: BoxReports): Promise<void>
  /** Rejects the queued reports and waits for the running transaction. */
  close(): Promise<void>
}

/** How long the first queued reports wait for those of other boxes. */
const BATCH_DELAY_MS = 10
/** The reports of one entry are at most 256 KiB. */
const MAX_BATCH_ENTRIES = 32

const compareIds = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

/** Output is committed without delay: batching would save less time than the delay adds. */
const isBulk = ({ reports }: BoxReports): boolean =>
  reports.some(({ report }) => report.type === 'command.output')

type QueuedReports = { reports: BoxReports; resolve(): void; reject(error: unknown): void }

export function createReportQueue(db: Db, commands: CommandReportHandler): ReportQueue {
  let queue: QueuedReports[] = []
  let timer: NodeJS.Timeout | undefined
  let committing: Promise<void> | undefined
  let closed = false

  function scheduleCommit(): void {
    if (committing !== undefined || queue.length === 0) return
    if (queue.some(({ reports }) => isBulk(reports))) startCommit()
    else timer ??= setTimeout(startCommit, BATCH_DELAY_MS)
  }

  function startCommit(): void {
    clearTimeout(timer)
    timer = undefined
    committing = commitBatch().finally(() => {
      committing = undefined
      scheduleCommit()
    })
  }

  async function commitBatch(): Promise<void> {
    const batch = queue.splice(0, MAX_BATCH_ENTRIES)
    // Every coordinator locks box rows in the order of their ids, which prevents deadlocks.
    batch.sort((a, b) => compareIds(a.reports.boxId, b.reports.boxId))
    try {
      await applyReports(
        db,
        commands,
        batch.map(({ reports }) => reports),
      )
      for (const { resolve } of batch) resolve()
    } catch (error) {
      if (batch.length === 1) batch[0]?.reject(error)
      // Apply each box on its own, so that one box's failure does not affect the others.
      else
        for (const queued of batch)
          await applyReports(db, commands, [queued.reports]).then(queued.resolve, queued.reject)
    }
  }

  return {
    apply(reports) {
      if (closed) return Promise.reject(new Error('the coordinator is stopping'))
      return new Promise<void>((resolve, reject) => {
        queue.push({ reports, resolve, reject })
        scheduleCommit()
      })
    },
    async close() {
      closed = true
      clearTimeout(timer)
      const remaining = queue
      queue = []
      for (const { reject } of remaining) reject(new Error('the coordinator is stopping'))
      await committing
    },
  }
}
