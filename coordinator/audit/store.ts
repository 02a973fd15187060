// Queries on the audit log.
import { START_HASH } from '../../shared/audit-chain.ts'
import type { Db } from '../db/open.ts'
import type { AuditEventRow, AuditHeadRow } from '../db/schema.ts'
import { forUpdate, type Trx } from '../db/transaction.ts'

export const insertAuditEvent = (trx: Trx, row: AuditEventRow) =>
  trx.insertInto('audit_log').values(row).execute()

/** The head of a workspace without events. */
export const EMPTY_HEAD: Omit<AuditHeadRow, 'workspace_id'> = {
  no: 0,
  hash: START_HASH,
  at: 0,
  pruned_no: 0,
  pruned_hash: START_HASH,
}

/** Locks the newest event of the workspace until the transaction ends: the numbers of events are in commit order. */
export async function lockHead(trx: Trx, workspaceId: string): Promise<AuditHeadRow> {
  const query = forUpdate(
    trx,
    trx.selectFrom('audit_heads').selectAll().where('workspace_id', '=', workspaceId),
  )
  const head = await query.executeTakeFirst()
  if (head) return head
  await trx
    .insertInto('audit_heads')
    .values({ workspace_id: workspaceId, ...EMPTY_HEAD })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return query.executeTakeFirstOrThrow()
}

export const updateHead = (trx: Trx, { workspace_id, no, hash, at }: AuditEventRow) =>
  trx.updateTable('audit_heads').set({ no, hash, at }).where('workspace_id', '=', workspace_id).execute()

/**
 * Erases the details of the first `limit` events after `after` that clients have reported, with their salts. Hashes stay, so
 * that the chain can be verified. Returns the number of the last of these events; undefined: there are none. Events without
 * details count: otherwise one call could read the whole log.
 */
export async function eraseReportedDetails(
  trx: Trx,
  workspaceId: string,
  after: number,
  limit: number,
): Promise<number | undefined> {
  const rows = await trx
    .selectFrom('audit_log')
    .select('no')
    .where('workspace_id', '=', workspaceId)
    .where('origin', '=', 'client')
    .where('no', '>', after)
    .orderBy('no')
    .limit(limit)
    .execute()
  const numbers = rows.map(({ no }) => no)
  if (numbers.length === 0) return undefined
  await trx
    .updateTable('audit_log')
    .set({ detail: null, salt: null })
    .where('workspace_id', '=', workspaceId)
    .where('no', 'in', numbers)
    .where('detail', '!=', '{}')
    .execute()
  return numbers.at(-1)
}

export const findHead = (db: Db, workspaceId: string): Promise<AuditHeadRow | undefined> =>
  db.selectFrom('audit_heads').selectAll().where('workspace_id', '=', workspaceId).executeTakeFirst()

/** Oldest first. */
export const listChain = (
  db: Db,
  workspaceId: string,
  after: number,
  limit: number,
): Promise<AuditEventRow[]> =>
  db
    .selectFrom('audit_log')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('no', '>', after)
    .orderBy('no')
    .limit(limit)
    .execute()

/** Lists the ids in ascending order. Leaves out workspaces without events. */
export async function listWorkspaceIds(db: Db, after: string, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('audit_heads')
    .select('workspace_id')
    .where('workspace_id', '>', after)
    .orderBy('workspace_id')
    .limit(limit)
    .execute()
  return rows.map(({ workspace_id }) => workspace_id)
}

/**
 * The number of the newest event before the instant, in milliseconds since the epoch. Leaves out the records of earlier
 * deletions: otherwise deleting these records would be recorded again, forever.
 */
export async function findNewestEventBefore(
  db: Db,
  workspaceId: string,
  at: number,
): Promise<number | undefined> {
  const row = await db
    .selectFrom('audit_log')
    .select('no')
    .where('workspace_id', '=', workspaceId)
    .where('at', '<', at)
    .where('kind', '!=', 'audit.prune')
    .orderBy('at', 'desc')
    .orderBy('no', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.no
}

export const listOldestEvents = (trx: Trx, workspaceId: string, through: number, limit: number) =>
  trx
    .selectFrom('audit_log')
    .select(['no', 'hash'])
    .where('workspace_id', '=', workspaceId)
    .where('no', '<=', through)
    .orderBy('no')
    .limit(limit)
    .execute()

export const deleteEventsThrough = (trx: Trx, workspaceId: string, no: number) =>
  trx.deleteFrom('audit_log').where('workspace_id', '=', workspaceId).where('no', '<=', no).execute()

export const updateAnchor = (
  trx: Trx,
  workspaceId: string,
  { no, hash }: Pick<AuditEventRow, 'no' | 'hash'>,
) =>
  trx
    .updateTable('audit_heads')
    .set({ pruned_no: no, pruned_hash: hash })
    .where('workspace_id', '=', workspaceId)
    .execute()
