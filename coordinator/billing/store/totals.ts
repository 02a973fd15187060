// Queries on the totals of days and months.
import type { Db } from '../../db/open.ts'
import type { Trx } from '../../db/transaction.ts'
import type { BillingTotalRow } from './tables.ts'

/** Adds the amounts to the totals. Each key occurs once. */
export async function addToTotals(trx: Trx, rows: readonly BillingTotalRow[]): Promise<void> {
  if (rows.length === 0) return
  await trx
    .insertInto('billing_totals')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['workspace_id', 'period', 'user_id', 'box_id']).doUpdateSet((eb) => ({
        amount_micros: eb('billing_totals.amount_micros', '+', eb.ref('excluded.amount_micros')),
        compute_seconds: eb('billing_totals.compute_seconds', '+', eb.ref('excluded.compute_seconds')),
      })),
    )
    .execute()
}

export type TotalsQuery = { workspaceId: string; period: string; userId?: string | undefined }

export function listTotals(
  db: Db | Trx,
  { workspaceId, period, userId }: TotalsQuery,
): Promise<BillingTotalRow[]> {
  const query = db
    .selectFrom('billing_totals')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('period', '=', period)
  return (userId === undefined ? query : query.where('user_id', '=', userId)).execute()
}

/** The months that have totals. */
export async function listMonths(db: Db | Trx, workspaceId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('billing_totals')
    .select('period')
    .distinct()
    .where('workspace_id', '=', workspaceId)
    .execute()
  return rows.map(({ period }) => period).filter((period) => period.length === MONTH_CHARS)
}

const MONTH_CHARS = '2030-01'.length

export type PeriodsQuery = { workspaceId: string; first: string; last: string; userId?: string | undefined }

type SumRow = { period: string; amount: number | string | bigint; seconds: number | string | bigint }

/** The totals of each period from `first` to `last`, in their order. */
export const sumPeriods = (db: Db | Trx, query: PeriodsQuery): Promise<SumRow[]> =>
  selectSums(db, query).orderBy('period').execute()

/** The same for each box or each user, in no order. */
export const sumPeriodsOf = (
  db: Db | Trx,
  column: 'box_id' | 'user_id',
  query: PeriodsQuery,
): Promise<(SumRow & { id: string })[]> =>
  selectSums(db, query).select(`${column} as id`).groupBy(column).execute()

function selectSums(db: Db | Trx, { workspaceId, first, last, userId }: PeriodsQuery) {
  const query = db
    .selectFrom('billing_totals')
    .select(({ fn }) => [
      'period',
      fn.sum<number | string | bigint>('amount_micros').as('amount'),
      fn.sum<number | string | bigint>('compute_seconds').as('seconds'),
    ])
    .where('workspace_id', '=', workspaceId)
    .where('period', '>=', first)
    .where('period', '<=', last)
    .groupBy('period')
  return userId === undefined ? query : query.where('user_id', '=', userId)
}
