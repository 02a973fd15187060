// Reads and writes rows of boxes. No other directory writes the table.
import type { Updateable } from 'kysely'
import { isOnHost } from '../../db/is-on-host.ts'
import type { Db } from '../../db/open.ts'
import { prepareQuery, prepareWrite } from '../../db/prepared-queries.ts'
import { recordRowChange } from '../../db/row-changes.ts'
import type { BoxRow } from '../../db/schema.ts'
import { forUpdate, type Trx } from '../../db/transaction.ts'
import type { Resource } from '../../http/visibility.ts'
import type { VariableColumns } from '../variables.ts'

export const findBox = (db: Db | Trx, boxId: string): Promise<BoxRow | undefined> =>
  db.selectFrom('boxes').selectAll().where('id', '=', boxId).executeTakeFirst()

export async function updateBox(trx: Trx, boxId: string, changes: Updateable<BoxRow>): Promise<BoxRow> {
  recordRowChange(trx, { table: 'boxes', id: boxId })
  return trx
    .updateTable('boxes')
    .set(changes)
    .where('id', '=', boxId)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** The inserted row, or undefined when a live box of the workspace has the same name. */
export function insertBox(trx: Trx, row: BoxRow): Promise<BoxRow | undefined> {
  recordRowChange(trx, { table: 'boxes', id: row.id })
  return trx
    .insertInto('boxes')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .executeTakeFirst()
}

/** Deletes the row of a box. All rows that refer to the box must have been deleted (delete-rows.ts). */
export async function deleteBox(trx: Trx, id: string): Promise<void> {
  const row = await trx
    .deleteFrom('boxes')
    .where('id', '=', id)
    .returning(['workspace_id', 'owner_user_id'])
    .executeTakeFirst()
  if (row === undefined) return
  const deleted = { workspaceId: row.workspace_id, boxId: id, ownerUserId: row.owner_user_id }
  recordRowChange(trx, { table: 'boxes', id, deleted })
}

/** undefined: the box does not exist. */
export const findVariableColumns = (db: Db, id: string): Promise<VariableColumns | undefined> =>
  db
    .selectFrom('boxes')
    .select(['env_vars', 'environment_vars', 'mount_vars'])
    .where('id', '=', id)
    .executeTakeFirst()

/** The fields of a box that decide who may see it, and its operations. */
export async function findBoxResource(
  db: Db | Trx,
  boxId: string,
): Promise<Pick<Resource, 'boxId' | 'ownerUserId'>> {
  const row = await db.selectFrom('boxes').select('owner_user_id').where('id', '=', boxId).executeTakeFirst()
  return { boxId, ownerUserId: row?.owner_user_id ?? null }
}

const executeReportUpdate = prepareWrite((trx) =>
  trx.updateTable('boxes').set({ report_epoch: '', report_seq: 0 }).where('id', '=', ''),
)

/** Records that the reports of an epoch are stored up to `seq`. Runs for each group of reports. */
export const updateReportSeq = (trx: Trx, boxId: string, epoch: string, seq: number): Promise<number> =>
  executeReportUpdate(trx, [epoch, seq, boxId])

/** Every edge request runs one of these. */
export const prepareBoxQueries = (db: Db) => ({
  byId: prepareQuery<BoxRow, [id: string]>(db, (database) =>
    database.selectFrom('boxes').selectAll().where('id', '=', ''),
  ),
  /** Live boxes only. */
  byName: prepareQuery<BoxRow, [workspaceId: string, hostname: string]>(db, (database) =>
    database
      .selectFrom('boxes')
      .selectAll()
      .where('workspace_id', '=', '')
      .where('hostname', '=', '')
      .where('terminated_at', 'is', null),
  ),
})

type TokenRow = Pick<BoxRow, 'id' | 'workspace_id' | 'agent_token_hash'>

/** Every connection of an agent runs this. */
export const prepareTokenQuery = (db: Db) =>
  prepareQuery<TokenRow, [id: string]>(db, (database) =>
    database.selectFrom('boxes').select(['id', 'workspace_id', 'agent_token_hash']).where('id', '=', ''),
  )

export const listTokenHashes = (db: Db, boxIds: readonly string[]): Promise<TokenRow[]> =>
  db
    .selectFrom('boxes')
    .select(['id', 'workspace_id', 'agent_token_hash'])
    .where('id', 'in', boxIds)
    .execute()

/** Reads the fields that decide whether the agent is upgraded. */
export const findAgent = (db: Db | Trx, boxId: string) =>
  db
    .selectFrom('boxes')
    .select(['workspace_id', 'host', 'agent_failure', 'agent_failure_dismissed'])
    .where('id', '=', boxId)
    .executeTakeFirst()

/** Stores the build that the agent failed to install, unless the row of the box has been deleted. */
export async function storeFailure(trx: Trx, boxId: string, failure: string | null): Promise<void> {
  await trx
    .updateTable('boxes')
    .set({ agent_failure: failure, agent_failure_dismissed: 0 })
    .where('id', '=', boxId)
    .execute()
}

/** Failed builds are offered again. */
export async function dismissFailures(trx: Trx, workspaceId: string): Promise<void> {
  await trx
    .updateTable('boxes')
    .set({ agent_failure_dismissed: 1 })
    .where('workspace_id', '=', workspaceId)
    .where('agent_failure', 'is not', null)
    .execute()
}

const selectUnrestricted = (trx: Trx, workspaceId: string, ownerUserId: string) =>
  trx
    .selectFrom('boxes')
    .where('workspace_id', '=', workspaceId)
    .where('owner_user_id', '=', ownerUserId)
    .where('terminated_at', 'is', null)
    .where('restricted', '=', 0)

/** The boxes of a user that are not restricted, locked in the order of their ids. */
export const lockUnrestrictedBoxes = (
  trx: Trx,
  workspaceId: string,
  ownerUserId: string,
): Promise<BoxRow[]> =>
  forUpdate(trx, selectUnrestricted(trx, workspaceId, ownerUserId).selectAll().orderBy('id')).execute()

export const hasUnrestrictedBoxes = async (
  trx: Trx,
  workspaceId: string,
  ownerUserId: string,
): Promise<boolean> => {
  const query = selectUnrestricted(trx, workspaceId, ownerUserId).select('id').limit(1)
  return (await query.executeTakeFirst()) !== undefined
}

/** The boxes that do not have the files of the snapshot yet. */
export async function listBoxIdsBySource(db: Db | Trx, snapshotId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('boxes')
    .select('id')
    .where('source_snapshot_id', '=', snapshotId)
    .execute()
  return rows.map(({ id }) => id)
}

/** The box of the host that has been frozen for the longest time. */
export async function findOldestFrozenBoxId(db: Db, host: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('boxes')
    .select('id')
    .where('suspended_as', '=', 'frozen')
    .where('observed_state', '=', 'suspended')
    .where(isOnHost('boxes', host))
    .orderBy('state_since')
    .limit(1)
    .executeTakeFirst()
  return row?.id
}
