// Reports of many boxes, committed together: a disk that must sync a thousand times a second does nothing else.

import type { ReportedCommands } from '../commands/commands.ts'
import type { Db } from '../db/open.ts'
import { applyReports, type BoxReports } from './agents.ts'

export type ReportQueue = {
  /** Resolves once they are committed. */
  apply(reports: BoxReports): Promise<void>
  /** What is not begun is refused: the boxes send it again. */
  close(): Promise<void>
}

/** How long the first waits for others. */
const GATHER_MS = 10
/** Reports of a box that travelled together are 256 KiB at most. */
const BOXES_AT_ONCE = 32

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

/** Much output: what waits longer than its commit takes would only be slower. */
const isBulk = ({ reports }: BoxReports): boolean =>
  reports.some(({ report }) => report.type === 'command.output')

type Waiting = { reports: BoxReports; resolve(): void; reject(error: unknown): void }

export function createReportQueue(db: Db, commands: ReportedCommands): ReportQueue {
  let waiting: Waiting[] = []
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let closed = false

  function schedule(): void {
    if (running !== undefined || waiting.length === 0) return
    if (waiting.some(({ reports }) => isBulk(reports))) begin()
    else timer ??= setTimeout(begin, GATHER_MS)
  }

  function begin(): void {
    clearTimeout(timer)
    timer = undefined
    running = commitSome().finally(() => {
      running = undefined
      schedule()
    })
  }

  async function commitSome(): Promise<void> {
    const batch = waiting.splice(0, BOXES_AT_ONCE)
    // Rows of boxes are locked in one order, whoever locks them.
    batch.sort((a, b) => compare(a.reports.boxId, b.reports.boxId))
    try {
      await applyReports(
        db,
        commands,
        batch.map(({ reports }) => reports),
      )
      for (const { resolve } of batch) resolve()
    } catch (error) {
      if (batch.length === 1) batch[0]?.reject(error)
      // One box's trouble is not the others'.
      else
        for (const one of batch) await applyReports(db, commands, [one.reports]).then(one.resolve, one.reject)
    }
  }

  return {
    apply(reports) {
      if (closed) return Promise.reject(new Error('the coordinator is stopping'))
      return new Promise<void>((resolve, reject) => {
        waiting.push({ reports, resolve, reject })
        schedule()
      })
    },
    async close() {
      closed = true
      clearTimeout(timer)
      const left = waiting
      waiting = []
      for (const { reject } of left) reject(new Error('the coordinator is stopping'))
      await running
    },
  }
}
