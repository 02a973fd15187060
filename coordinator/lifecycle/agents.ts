// What the store knows of a box's agent: its token, and the reports that were applied.
import { timingSafeEqual } from 'node:crypto'
import type { ObservedState } from '../../shared/api/boxes.ts'
import type { CommandReport, DurableReport } from '../../shared/api/reports.ts'
import type { ReportedCommands } from '../commands/commands.ts'
import { loseCommands, loseSyncCommands } from '../commands/lost.ts'
import { hotQuery } from '../db/hot.ts'
import type { Db } from '../db/open.ts'
import { type OnCommit, type Trx, transaction } from '../db/transaction.ts'
import { lockBox, updateBox } from './store.ts'

/** Whether the box exists, may have a machine, and its token has this SHA-256 (hex). */
export function createAgentAuthenticator(db: Db): (boxId: string, tokenHash: string) => Promise<boolean> {
  const tokenOf = hotQuery<{ agent_token_hash: string | null }, [id: string]>(db, (q) =>
    q.selectFrom('boxes').select('agent_token_hash').where('id', '=', ''),
  )
  return async (boxId, tokenHash) => {
    const [row] = await tokenOf(boxId)
    if (!row?.agent_token_hash) return false
    const [stored, presented] = [Buffer.from(row.agent_token_hash), Buffer.from(tokenHash)]
    return stored.length === presented.length && timingSafeEqual(stored, presented)
  }
}

export type BoxReports = {
  boxId: string
  epoch: string
  reports: readonly { seq: number; report: DurableReport }[]
}

/**
 * Applies a box's reports, each once, in one transaction: resolved means committed. Ones up to the last sequence
 * applied in this epoch are skipped; another epoch is a spool that begins anew.
 */
export async function applyReports(
  db: Db,
  commands: ReportedCommands,
  all: readonly BoxReports[],
): Promise<void> {
  await commands.load()
  await transaction(db, async (trx, onCommit) => {
    for (const one of all) await applyToBox(trx, onCommit, commands, one)
  })
}

const NOTHING_RUNS: readonly ObservedState[] = ['suspended', 'terminated']

async function applyToBox(
  trx: Trx,
  onCommit: OnCommit,
  commands: ReportedCommands,
  { boxId, epoch, reports }: BoxReports,
): Promise<void> {
  const box = await lockBox(trx, boxId)
  if (!box) return
  // What ran is known to nobody, until the box reports it anew.
  if (box.report_epoch !== null && box.report_epoch !== epoch) await loseCommands(trx, boxId)
  let applied = box.report_epoch === epoch ? box.report_seq : 0
  let ofCommands: CommandReport[] = []
  const applyCommands = async () => {
    if (ofCommands.length > 0) await commands.apply(trx, onCommit, boxId, ofCommands)
    ofCommands = []
  }
  for (const { seq, report } of reports) {
    if (seq <= applied) continue
    applied = seq
    if (report.type !== 'agent.started') {
      ofCommands.push(report)
      continue
    }
    await applyCommands()
    await loseSyncCommands(trx, boxId)
    await updateBox(trx, boxId, { agent_version: report.agentVersion, boot_id: report.bootId })
  }
  await applyCommands()
  // What was on its way when the machine ended must not make a command run for ever.
  if (NOTHING_RUNS.includes(box.observed_state)) await loseCommands(trx, boxId)
  if (box.report_epoch === epoch && applied === box.report_seq) return
  await updateBox(trx, boxId, { report_epoch: epoch, report_seq: applied })
}
