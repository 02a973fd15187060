// What the store knows of a box's agent: its token, and the reports that were applied.
import { timingSafeEqual } from 'node:crypto'
import type { DurableReport } from '../../shared/api/reports.ts'
import { hotQuery } from '../db/hot.ts'
import type { Db } from '../db/open.ts'
import { type Trx, transaction } from '../db/transaction.ts'
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

/**
 * Applies a box's reports, each once, in one transaction: resolved means committed. Ones up to the last sequence
 * applied in this epoch are skipped; another epoch is a spool that begins anew.
 */
export function applyReports(
  db: Db,
  boxId: string,
  epoch: string,
  reports: readonly { seq: number; report: DurableReport }[],
): Promise<void> {
  return transaction(db, async (trx) => {
    const box = await lockBox(trx, boxId)
    if (!box) return
    let applied = box.report_epoch === epoch ? box.report_seq : 0
    for (const { seq, report } of reports) {
      if (seq <= applied) continue
      await applyReport(trx, boxId, report)
      applied = seq
    }
    if (box.report_epoch === epoch && applied === box.report_seq) return
    await updateBox(trx, boxId, { report_epoch: epoch, report_seq: applied })
  })
}

async function applyReport(trx: Trx, boxId: string, report: DurableReport): Promise<void> {
  switch (report.type) {
    case 'agent.started':
      await updateBox(trx, boxId, { agent_version: report.agentVersion, boot_id: report.bootId })
  }
}
