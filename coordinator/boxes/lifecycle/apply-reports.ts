// Applies the reports of agents to the database.

import type { Machine } from '../../../shared/api/machine.ts'
import type { MetricsSample } from '../../../shared/api/metrics.ts'
import type { ProcessSnapshotReport } from '../../../shared/api/process-snapshots.ts'
import type { CommandReport, DurableReport } from '../../../shared/api/reports.ts'
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRow } from '../../db/schema.ts'
import { type OnCommit, type Trx, transaction } from '../../db/transaction.ts'
import type { CommandReportHandler } from '../../history/commands/commands.ts'
import { markCommandsLost, markSyncCommandsLost } from '../../history/commands/mark-lost.ts'
import { updateBox, updateReportSeq } from '../store/boxes.ts'

export type BoxReports = {
  boxId: string
  /** Identifies the agent's report spool; an agent that lost reports starts a new epoch. */
  epoch: string
  reports: readonly { seq: number; report: DurableReport }[]
}

/** The services that store reports. All are called in the transaction that records the sequence number. */
export type ReportHandlers = {
  commands: CommandReportHandler
  metrics: { apply(trx: Trx, boxId: string, samples: readonly MetricsSample[]): Promise<void> }
  processSnapshots: {
    apply(trx: Trx, box: BoxRow, snapshots: readonly ProcessSnapshotReport[]): Promise<void>
  }
}

/**
 * Applies the reports of several boxes in one transaction and resolves after its commit. Reports up to the last
 * applied sequence of the same epoch are skipped, so each report is applied once.
 */
export async function applyReports(
  db: Db,
  handlers: ReportHandlers,
  batch: readonly BoxReports[],
): Promise<void> {
  await handlers.commands.loadKey()
  await transaction(
    db,
    async (trx, onCommit) => {
      for (const boxReports of batch) await applyBoxReports(trx, onCommit, handlers, boxReports)
    },
    { notifiesLocally: true },
  )
}

const hasProcesses = ({ observed_state: state, suspended_as: suspendedAs }: BoxRow): boolean =>
  state === 'suspended' ? suspendedAs === 'frozen' : state !== 'deep_sleep' && state !== 'terminated'

async function applyBoxReports(
  trx: Trx,
  onCommit: OnCommit,
  { commands, metrics, processSnapshots }: ReportHandlers,
  { boxId, epoch, reports }: BoxReports,
): Promise<void> {
  const box = await lockBox(trx, boxId)
  if (!box) return
  // A new epoch means that the agent lost its state: running commands are lost until the agent reports them again.
  if (box.report_epoch !== null && box.report_epoch !== epoch) await markCommandsLost(trx, boxId)
  let lastApplied = box.report_epoch === epoch ? box.report_seq : 0
  let commandReports: CommandReport[] = []
  let machine: Machine | undefined
  const samples: MetricsSample[] = []
  const snapshots: ProcessSnapshotReport[] = []
  const applyCommandReports = async () => {
    if (commandReports.length > 0) await commands.apply(trx, onCommit, box, commandReports)
    commandReports = []
  }
  for (const { seq, report } of reports) {
    if (seq <= lastApplied) continue
    lastApplied = seq
    if (report.type === 'metrics.sample') samples.push(report)
    else if (report.type === 'processes.snapshot') snapshots.push(report)
    else if (report.type === 'machine') machine = report.machine
    else if (report.type === 'agent.started') {
      await applyCommandReports()
      await markSyncCommandsLost(trx, boxId, report.survivingCommands)
      await updateBox(trx, boxId, { agent_version: report.agentVersion, boot_id: report.bootId })
    } else commandReports.push(report)
  }
  await applyCommandReports()
  if (samples.length > 0) await metrics.apply(trx, boxId, samples)
  if (snapshots.length > 0) await processSnapshots.apply(trx, box, snapshots)
  if (machine !== undefined) await updateBox(trx, boxId, { machine: JSON.stringify(machine) })
  // A report that was in transit while the machine stopped must not leave a command running indefinitely.
  if (!hasProcesses(box)) await markCommandsLost(trx, boxId)
  if (box.report_epoch === epoch && lastApplied === box.report_seq) return
  await updateReportSeq(trx, boxId, epoch, lastApplied)
}
