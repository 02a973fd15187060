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

/** Deletes the codes of its keys and users, and those of people who are members of no other workspace. */
export async function deleteSignInCodes(trx: Trx, workspaceId: string): Promise<void> {
  const usersOf = trx.selectFrom('users').where('workspace_id', '=', workspaceId)
  const keys = trx.selectFrom('api_keys').select('id').where('workspace_id', '=', workspaceId)
  await trx.deleteFrom('sign_in_codes').where('key_id', 'in', keys).execute()
  await trx.deleteFrom('sign_in_codes').where('user_id', 'in', usersOf.select('id')).execute()
  await trx
    .deleteFrom('sign_in_codes')
    .where('email', 'in', usersOf.select('email').$castTo<{ email: string }>())
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('users')
            .select('users.id')
            .whereRef('users.email', '=', 'sign_in_codes.email')
            .where('users.workspace_id', '!=', workspaceId)
            .where('users.removed_at', 'is', null),
        ),
      ),
    )
    .execute()
}

/** The members cannot sign in any more, and their credentials are not accepted. Returns when that was done first. */
export async function removeMembers(trx: Trx, workspaceId: string, now: number): Promise<number> {
  await trx
    .updateTable('users')
    .set({ removed_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('removed_at', 'is', null)
    .execute()
  const { removedAt } = await trx
    .selectFrom('users')
    .select(({ fn }) => fn.max('removed_at').as('removedAt'))
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirstOrThrow()
  return removedAt ?? now
}

/** With its schedules. */
export async function deleteWorkspace(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('workspaces').where('id', '=', id).execute()
  await trx.deleteFrom('schedules').where('target_id', '=', id).execute()
}
