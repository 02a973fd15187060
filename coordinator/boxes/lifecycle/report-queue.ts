// Group commit: applies the reports of many boxes in one transaction, to limit the number of disk syncs. A transaction is
// small, because SQLite blocks the event loop until its end.
import { setImmediate } from 'node:timers/promises'
import type { DurableReport } from '../../../shared/api/reports.ts'
import type { Db } from '../../db/open.ts'
import { applyReports, type BoxReports, type ReportHandlers } from './apply-reports.ts'

export type ReportQueue = {
  /** Resolves after the commit. Rejects when the reports were not committed; the agent then sends them again. */
  apply(reports: BoxReports): Promise<void>
  /** Rejects the queued reports and waits for the running transaction. */
  close(): Promise<void>
}

/** How long reports may wait for those of other boxes. */
const MAX_DELAY_MS = {
  /** Batching output would save less time than the delay adds. */
  output: 0,
  command: 10,
  /** Samples are by far the most reports of a large fleet. Few of them are read within seconds. */
  sample: 100,
} as const
/** Limits the size and the duration of a transaction. The reports of one entry are at most 256 KiB. */
const MAX_BATCH_WEIGHT = 128
const MAX_COMMANDS = 16
const COMMAND_WEIGHT = MAX_BATCH_WEIGHT / MAX_COMMANDS

type Urgency = keyof typeof MAX_DELAY_MS

const SAMPLE_TYPES: readonly DurableReport['type'][] = ['metrics.sample', 'processes.snapshot']

function getUrgency({ reports }: BoxReports): Urgency {
  if (reports.some(({ report }) => report.type === 'command.output')) return 'output'
  return reports.every(({ report }) => SAMPLE_TYPES.includes(report.type)) ? 'sample' : 'command'
}

type Slice = { reports: BoxReports['reports'][number][]; commandIds: Set<string> }

const newSlice = (): Slice => ({ reports: [], commandIds: new Set() })

/** Splits reports, in their order. Each slice has reports of at most MAX_COMMANDS commands. */
function sliceByCommands(reports: BoxReports['reports']): Slice[] {
  let slice = newSlice()
  const slices = [slice]
  for (const sequenced of reports) {
    const { report } = sequenced
    if ('commandId' in report) {
      if (slice.commandIds.size === MAX_COMMANDS && !slice.commandIds.has(report.commandId)) {
        slice = newSlice()
        slices.push(slice)
      }
      slice.commandIds.add(report.commandId)
    }
    slice.reports.push(sequenced)
  }
  return slices
}

const compareIds = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

type QueuedReports = {
  reports: BoxReports
  weight: number
  /** The time at which the reports are due, on the clock of performance.now(). */
  dueAt: number
  resolve(): void
  reject(error: unknown): void
}

export function createReportQueue(db: Db, handlers: ReportHandlers): ReportQueue {
  let queue: QueuedReports[] = []
  /** The earliest `dueAt` of the queue. */
  let nextDueAt = Number.POSITIVE_INFINITY
  let timer: { handle: NodeJS.Timeout; dueAt: number } | undefined
  let committing: Promise<void> | undefined
  let closed = false

  function scheduleCommit(): void {
    if (committing !== undefined || queue.length === 0) return
    const delayMs = nextDueAt - performance.now()
    if (delayMs <= 0) startCommit()
    else if (timer === undefined || nextDueAt < timer.dueAt) {
      clearTimeout(timer?.handle)
      timer = { handle: setTimeout(startCommit, delayMs), dueAt: nextDueAt }
    }
  }

  function startCommit(): void {
    clearTimeout(timer?.handle)
    timer = undefined
    committing = commitBatch()
      // Requests come first: a transaction on SQLite does not return to the event loop.
      .then(() => setImmediate())
      .finally(() => {
        committing = undefined
        scheduleCommit()
      })
  }

  /** Removes the entries that are due first. */
  function takeBatch(): QueuedReports[] {
    queue.sort((a, b) => a.dueAt - b.dueAt)
    let [count, weight] = [0, 0]
    for (; count < queue.length; count += 1) {
      weight += queue[count]?.weight ?? 0
      if (count > 0 && weight > MAX_BATCH_WEIGHT) break
    }
    const batch = queue.splice(0, count)
    nextDueAt = queue[0]?.dueAt ?? Number.POSITIVE_INFINITY
    return batch
  }

  async function commitBatch(): Promise<void> {
    const batch = takeBatch()
    // Every coordinator locks box rows in the order of their ids, which prevents deadlocks.
    batch.sort((a, b) => compareIds(a.reports.boxId, b.reports.boxId))
    try {
      await applyReports(
        db,
        handlers,
        batch.map(({ reports }) => reports),
      )
      for (const { resolve } of batch) resolve()
    } catch (error) {
      if (batch.length === 1) batch[0]?.reject(error)
      // Apply each box on its own, so that one box's failure does not affect the others.
      else
        for (const queued of batch)
          await applyReports(db, handlers, [queued.reports]).then(queued.resolve, queued.reject)
    }
  }

  function enqueue(reports: BoxReports, weight: number, dueAt: number): Promise<void> {
    if (closed) return Promise.reject(new Error('the coordinator is stopping'))
    return new Promise<void>((resolve, reject) => {
      nextDueAt = Math.min(nextDueAt, dueAt)
      queue.push({ reports, weight, dueAt, resolve, reject })
      scheduleCommit()
    })
  }

  return {
    async apply(reports) {
      const dueAt = performance.now() + MAX_DELAY_MS[getUrgency(reports)]
      // In turn: when a slice fails, the sequence number of a later one would skip it.
      for (const { reports: slice, commandIds } of sliceByCommands(reports.reports))
        await enqueue({ ...reports, reports: slice }, Math.max(1, commandIds.size * COMMAND_WEIGHT), dueAt)
    },
    async close() {
      closed = true
      clearTimeout(timer?.handle)
      const remaining = queue
      queue = []
      for (const { reject } of remaining) reject(new Error('the coordinator is stopping'))
      await committing
    },
  }
}
