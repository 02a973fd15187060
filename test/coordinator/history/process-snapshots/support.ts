// Sets up the process snapshots of a box on a test database, and reports snapshots as its agent does.

import { applyReports } from '../../../../coordinator/boxes/lifecycle/apply-reports.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import {
  createProcessSnapshots,
  type ProcessSnapshots,
} from '../../../../coordinator/history/process-snapshots/process-snapshots.ts'
import type { Actor } from '../../../../coordinator/http/actor.ts'
import type {
  DeltaProcess,
  ProcessSnapshotReport,
  ProcsAt,
} from '../../../../shared/api/process-snapshots.ts'
import { toTimestamp } from '../../../../shared/clock.ts'
import { createDelta, EMPTY_SNAPSHOT, type ProcessSnapshot } from '../../../../shared/process-delta.ts'
import { noReportHandlers } from '../../../support/report-handlers.ts'
import {
  createOwner,
  createTestBoxService,
  createTestClock,
  type TestClock,
} from '../../../support/workspace.ts'

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

export type Setup = {
  db: Db
  clock: TestClock
  owner: Actor
  boxes: ReturnType<typeof createTestBoxService>
  boxId: string
  snapshots: ProcessSnapshots
  logged: Record<string, unknown>[]
  /** Applies reports that arrive together. */
  report(reports: readonly ProcessSnapshotReport[], from?: string): Promise<void>
  /** The time of the nearest snapshot, or the message of the error. */
  findTime(t: number): Promise<number | string>
}

export async function setUp(db: Db): Promise<Setup> {
  const clock = createTestClock()
  const owner = await createOwner(db, clock)
  const boxes = createTestBoxService(db, { clock })
  const { id: boxId } = await boxes.create(owner, {})
  const logged: Record<string, unknown>[] = []
  const log = {
    warn: (fields: object, message: string) => void logged.push({ ...fields, message }),
  } as unknown as Parameters<typeof createProcessSnapshots>[0]['log']
  const snapshots = createProcessSnapshots({ db, clock, log, boxes })
  let seq = 0

  async function report(reports: readonly ProcessSnapshotReport[], from = boxId): Promise<void> {
    const numbered = reports.map((item) => ({ seq: ++seq, report: item }))
    await applyReports(db, { ...noReportHandlers, processSnapshots: snapshots.reportHandler }, [
      { boxId: from, epoch: 'e1', reports: numbered },
    ])
  }

  async function findTime(t: number): Promise<number | string> {
    try {
      return Date.parse((await snapshots.procsAt.get(owner, boxId, t)).at)
    } catch (error) {
      return (error as Error).message
    }
  }

  return { db, clock, owner, boxes, boxId, snapshots, logged, report, findTime }
}

export const processOf = (pid: number, fields: Partial<{ name: string; command: string | null }> = {}) =>
  [pid, 1, 1_800_000_000_000, 'box', fields.name ?? 'sh', fields.command ?? null] satisfies DeltaProcess

/** A snapshot in which every process has the usage 1. */
export const snapshotOf = (...processes: DeltaProcess[]): ProcessSnapshot => ({
  processes: new Map(processes.map((process) => [process[0], { process, cpuTenths: 1, rssKiB: 1 }])),
  ports: [],
  total: processes.length,
})

/** @param previous undefined: the report is complete */
export const reportOf = (
  at: number,
  snapshot: ProcessSnapshot,
  previous?: { at: number; snapshot: ProcessSnapshot },
): ProcessSnapshotReport => ({
  type: 'processes.snapshot',
  at,
  previousAt: previous?.at ?? null,
  delta: JSON.stringify(createDelta(previous?.snapshot ?? EMPTY_SNAPSHOT, snapshot)),
})

/** Complete snapshots with one process, whose pid is the index of the time. */
export const reportsAt = (...times: number[]): ProcessSnapshotReport[] =>
  times.map((at, index) => reportOf(at, snapshotOf(processOf(index + 1))))

/** The response that describes the snapshot, computed without the code under test. */
export function presentPlainly(at: number, { processes, ports, total }: ProcessSnapshot): ProcsAt {
  const pids = [...processes.keys()].sort((a, b) => a - b)
  const procs = pids.flatMap((pid) => {
    const entry = processes.get(pid)
    if (entry === undefined) return []
    const [, ppid, start, user, name, command] = entry.process
    return [
      {
        pid,
        ppid,
        user,
        name,
        command,
        cpuPct: entry.cpuTenths / 10,
        memBytes: entry.rssKiB * 1024,
        startedAt: toTimestamp(start),
      },
    ]
  })
  return {
    v: 1,
    at: toTimestamp(at),
    procs,
    ports: ports.map(([port, pid, process]) => ({ port, pid, process })),
    total,
  }
}
