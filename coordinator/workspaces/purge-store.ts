// Deletes the rows of a workspace in batches. A table with workspace_id that is missing here is a type error.
import { sql } from 'kysely'
import type { Tables } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

type WorkspaceTable = {
  [T in keyof Tables]: Tables[T] extends { workspace_id: string } ? T : never
}[keyof Tables]

/**
 * How a batch of rows of a table is selected; null: a workspace has at most one row. Boxes are deleted by their own
 * directory, with their history.
 */
const BATCH_COLUMNS = {
  tickets: 'id',
  enrollments: 'id',
  sessions: 'id',
  api_keys: 'id',
  idempotency_keys: 'key',
  operations: 'id',
  snapshots: 'id',
  policies: null,
  agent_rollouts: null,
  audit_sinks: null,
  audit_log: 'no',
  audit_heads: null,
  users: 'id',
} as const satisfies Record<Exclude<WorkspaceTable, 'boxes' | 'box_moves'>, string | null>

type PurgedTable = keyof typeof BATCH_COLUMNS

const ALL_TABLES = Object.keys(BATCH_COLUMNS) as PurgedTable[]
export const CREDENTIAL_TABLES = [
  'tickets',
  'enrollments',
  'sessions',
  'api_keys',
] as const satisfies PurgedTable[]
/** A row of these tables refers only to rows of later tables. */
export const OTHER_TABLES = ALL_TABLES.filter(
  (table) => !(CREDENTIAL_TABLES as readonly PurgedTable[]).includes(table),
)

/** Returns the number of deleted rows. */
export async function deleteSomeRows(
  trx: Trx,
  table: PurgedTable,
  workspaceId: string,
  limit: number,
): Promise<number> {
  const column = BATCH_COLUMNS[table]
  const from = sql.table(table)
  const ofWorkspace = sql`workspace_id = ${workspaceId}`
  const { numAffectedRows } = await (column === null
    ? sql`delete from ${from} where ${ofWorkspace}`
    : sql`delete from ${from} where ${column === 'id' ? sql`` : sql`${ofWorkspace} and `}${sql.ref(column)} in
        (select ${sql.ref(column)} from ${from} where ${ofWorkspace} limit ${limit})`
  ).execute(trx)
  return Number(numAffectedRows ?? 0)
}
