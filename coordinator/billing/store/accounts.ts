// Queries on the billing accounts of workspaces and the entries of their ledgers.
import { sql, type Updateable } from 'kysely'
import type { Db } from '../../db/open.ts'
import { forUpdate, type Trx } from '../../db/transaction.ts'
import { HOUR_SECONDS, toMonth } from '../usage.ts'
import type { BillingAccountRow, BillingEntryRow } from './tables.ts'

/** Locks the account until the transaction ends. Transactions lock boxes before the account, never after it. */
export const lockAccount = (trx: Trx, workspaceId: string): Promise<BillingAccountRow | undefined> =>
  forUpdate(
    trx,
    trx.selectFrom('billing_accounts').selectAll().where('workspace_id', '=', workspaceId),
  ).executeTakeFirst()

export const findAccount = (db: Db | Trx, workspaceId: string): Promise<BillingAccountRow | undefined> =>
  db.selectFrom('billing_accounts').selectAll().where('workspace_id', '=', workspaceId).executeTakeFirst()

/** No-op for a workspace that has an account. */
export const insertAccount = (trx: Trx, row: BillingAccountRow) =>
  trx
    .insertInto('billing_accounts')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute()

export const updateAccount = (
  trx: Trx,
  workspaceId: string,
  changes: Updateable<BillingAccountRow>,
): Promise<BillingAccountRow> =>
  trx
    .updateTable('billing_accounts')
    .set(changes)
    .where('workspace_id', '=', workspaceId)
    .returningAll()
    .executeTakeFirstOrThrow()

/** The rows of one statement: each has 12 values, and a statement of Postgres has at most 65,535. */
const MAX_ROWS = 1000

/** Inserts the entries whose cause is new. @returns the inserted entries */
export async function insertEntries(trx: Trx, rows: readonly BillingEntryRow[]): Promise<BillingEntryRow[]> {
  const inserted: BillingEntryRow[] = []
  for (let start = 0; start < rows.length; start += MAX_ROWS)
    inserted.push(
      ...(await trx
        .insertInto('billing_entries')
        .values(rows.slice(start, start + MAX_ROWS))
        .onConflict((conflict) => conflict.doNothing())
        .returningAll()
        .execute()),
    )
  return inserted
}

/** What an entry adds to the balance; negative for what it takes. */
export const changeOfBalance = ({
  debit,
  credit,
  amount_micros: amount,
}: Pick<BillingEntryRow, 'debit' | 'credit' | 'amount_micros'>): number =>
  (credit === 'balance' ? amount : 0) - (debit === 'balance' ? amount : 0)

export type EntryPosition = { at: number; cause: string }

/** Newest first. */
export function listEntries(
  db: Db | Trx,
  workspaceId: string,
  { before, limit }: { before?: EntryPosition | undefined; limit: number },
): Promise<BillingEntryRow[]> {
  let query = db.selectFrom('billing_entries').selectAll().where('workspace_id', '=', workspaceId)
  if (before !== undefined)
    query = query
      .where('at', '<=', before.at)
      .where((eb) => eb.or([eb('at', '<', before.at), eb('cause', '<', before.cause)]))
  return query.orderBy('at', 'desc').orderBy('cause', 'desc').limit(limit).execute()
}

export const findEntry = (
  db: Db | Trx,
  workspaceId: string,
  cause: string,
): Promise<BillingEntryRow | undefined> =>
  db
    .selectFrom('billing_entries')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('cause', '=', cause)
    .executeTakeFirst()

/** The refunds of the workspace. */
export const listRefunds = (
  trx: Trx,
  workspaceId: string,
): Promise<Pick<BillingEntryRow, 'cause' | 'amount_micros'>[]> =>
  trx
    .selectFrom('billing_entries')
    .select(['cause', 'amount_micros'])
    .where('workspace_id', '=', workspaceId)
    // SQLite uses the index billing_refunds only for a value in the text of the query.
    .where('kind', '=', sql.lit('refund'))
    .execute()

export type MonthUsage = { month: string; box_id: string; user_id: string; micros: number }

/** The usage of each box for its owner in each month by the entries. Reads all entries of usage. */
export async function sumUsage(db: Db | Trx, workspaceId: string): Promise<MonthUsage[]> {
  const usage = db
    .selectFrom('billing_entries')
    .where('workspace_id', '=', workspaceId)
    .where('kind', '=', 'usage')
  const { first, last } = await usage
    .select(({ fn }) => [fn.min('since').as('first'), fn.max('since').as('last')])
    .executeTakeFirstOrThrow()
  if (first === null || last === null) return []
  const months: MonthUsage[] = []
  for (let start = startOfMonth(Number(first)); start <= Number(last); ) {
    const end = startOfMonth(start + 32 * 24 * HOUR_SECONDS)
    const rows = await usage
      .select(({ fn }) => ['box_id', 'user_id', fn.sum('amount_micros').as('sum')])
      .where('since', '>=', start)
      .where('since', '<', end)
      // The index has the times.
      .where('at', '>', start * 1000)
      .where('at', '<=', end * 1000)
      .groupBy(['box_id', 'user_id'])
      .execute()
    for (const { box_id, user_id, sum } of rows)
      months.push({
        month: toMonth(start),
        box_id: box_id ?? '',
        user_id: user_id ?? '',
        micros: Number(sum),
      })
    start = end
  }
  return months
}

const startOfMonth = (seconds: number): number => Date.parse(`${toMonth(seconds)}-01T00:00:00Z`) / 1000

/** The balance by the entries. Reads all of them. */
export async function sumEntries(db: Db | Trx, workspaceId: string): Promise<number> {
  const rows = await db
    .selectFrom('billing_entries')
    .select(({ fn }) => ['debit', 'credit', fn.sum('amount_micros').as('sum')])
    .where('workspace_id', '=', workspaceId)
    .groupBy(['debit', 'credit'])
    .execute()
  return rows.reduce(
    (total, { debit, credit, sum }) => total + changeOfBalance({ debit, credit, amount_micros: Number(sum) }),
    0,
  )
}
