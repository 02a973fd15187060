// Reads the usage of a workspace in a month: from the totals, and from what is not charged yet.
import { MAX_DAY_PARTS, type Usage, type UsageGroup, type UsageQuery } from '../../shared/api/usage.ts'
import type { Clock } from '../../shared/clock.ts'
import { listHostnames } from '../boxes/lookups.ts'
import type { Db } from '../db/open.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { listUserNames } from '../identity/lookups.ts'
import type { FinanceService } from './service.ts'
import { findAccount } from './store/accounts.ts'
import { listTotals, sumPeriods, sumPeriodsOf } from './store/totals.ts'
import { toDay, toMonth } from './usage.ts'

export type ReadUsageOptions = {
  db: Db
  clock: Clock
  /** null: billing is off. */
  billing: { finances: Pick<FinanceService, 'load'> } | null
}

type Amounts = { micros: number; computeSeconds: number }
type Split = UsageQuery['split']
/** `id`: of the box or the member, of a day that is split. */
type Part = Amounts & { key: string; id?: string | undefined }
type Scope = { workspaceId: string; month: string; userId: string | undefined }

const MS = 1000
const LAST_DAY = 31

/** What a contractor reads is limited to the time in which the contractor owned the boxes. */
export function createUsageReader({ db, clock, billing }: ReadUsageOptions) {
  /** The usage of the month that is in no total. */
  async function listAccrued(trx: Trx, { workspaceId, month, userId }: Scope, by: UsageGroup, split: Split) {
    if (billing === null) return []
    const now = toMonth(Math.floor(clock.now() / MS))
    if (month > now) return []
    if (month < now) {
      const account = await findAccount(trx, workspaceId)
      if (account !== undefined && toMonth(account.charged_until) > month) return []
    }
    const { accrued } = await billing.finances.load(trx, workspaceId)
    return accrued
      .filter((usage) => toMonth(usage.hour) === month && (userId === undefined || usage.userId === userId))
      .map(({ micros, computeSeconds, ...usage }) => ({
        key: keyOf(usage, by),
        id: split && keyOf(usage, split),
        micros,
        computeSeconds,
      }))
  }

  /** Locks the account meanwhile, so that no charge moves usage from one list to the other. */
  const loadParts = (scope: Scope, by: UsageGroup, split: Split): Promise<Part[]> =>
    transaction(db, async (trx) => {
      const accrued = await listAccrued(trx, scope, by, split)
      return [...accrued, ...(await (by === 'day' ? readDays(trx, scope, split) : readMonth(trx, scope, by)))]
    })

  async function present(by: UsageGroup, split: Split, workspaceId: string, parts: readonly Part[]) {
    const sums = [...sumByKey(parts)]
    const ids = sums.map(([id]) => id)
    if (by === 'day') {
      const splits = split && splitDays(parts)
      const rows = sums.map(([day, amounts]) => ({
        day,
        ...amounts,
        ...(splits && { parts: splits.get(day) ?? [] }),
      }))
      return { by, rows: rows.sort((a, b) => (a.day < b.day ? -1 : 1)) } as const
    }
    if (by === 'member') {
      const users = await listUserNames(db, ids)
      const rows = sums.map(([userId, amounts]) => {
        const { name = null, email = null } = users.get(userId) ?? {}
        return { userId, name, email, ...amounts }
      })
      return { by, rows: rows.sort((a, b) => compare(a, b) || (a.userId < b.userId ? -1 : 1)) } as const
    }
    const hostnames = await listHostnames(db, workspaceId, ids)
    const rows = sums.map(([boxId, amounts]) => ({
      boxId,
      hostname: hostnames.get(boxId) ?? null,
      ...amounts,
    }))
    return { by, rows: rows.sort((a, b) => compare(a, b) || (a.boxId < b.boxId ? -1 : 1)) } as const
  }

  return async function readUsage(actor: Actor, query: UsageQuery): Promise<Usage> {
    const { by = 'box', month = toMonth(Math.floor(clock.now() / MS)) } = query
    const split = by === 'day' ? query.split : undefined
    const { workspaceId } = actor
    // No user has the empty id.
    const userId = actor.role === 'contractor' ? (actor.userId ?? '') : undefined
    const parts = billing === null ? [] : await loadParts({ workspaceId, month, userId }, by, split)
    const totalMicros = parts.reduce((sum, { micros }) => sum + micros, 0)
    return { month, totalMicros, ...(await present(by, split, workspaceId, parts)) }
  }
}

function keyOf({ boxId, userId, hour }: { boxId: string; userId: string; hour: number }, by: UsageGroup) {
  if (by === 'day') return toDay(hour)
  return by === 'box' ? boxId : userId
}

async function readMonth(trx: Trx, { workspaceId, month, userId }: Scope, by: 'box' | 'member') {
  const rows = await listTotals(trx, { workspaceId, period: month, userId })
  return rows.map((row) => ({
    key: by === 'box' ? row.box_id : row.user_id,
    micros: row.amount_micros,
    computeSeconds: row.compute_seconds,
  }))
}

async function readDays(trx: Trx, { workspaceId, month, userId }: Scope, split: Split): Promise<Part[]> {
  const query = { workspaceId, first: `${month}-01`, last: `${month}-${LAST_DAY}`, userId }
  const days: (Awaited<ReturnType<typeof sumPeriods>>[number] & { id?: string })[] =
    split === undefined
      ? await sumPeriods(trx, query)
      : await sumPeriodsOf(trx, split === 'box' ? 'box_id' : 'user_id', query)
  return days.map(({ period, id, amount, seconds }) => ({
    key: period,
    id,
    micros: Number(amount),
    computeSeconds: Number(seconds),
  }))
}

function sumByKey(parts: readonly Part[]): Map<string, Amounts> {
  const sums = new Map<string, Amounts>()
  for (const { key, micros, computeSeconds } of parts) {
    const sum = sums.get(key)
    sums.set(key, {
      micros: (sum?.micros ?? 0) + micros,
      computeSeconds: (sum?.computeSeconds ?? 0) + computeSeconds,
    })
  }
  return sums
}

/** The parts of each day, in the order of the amounts of the month. */
function splitDays(parts: readonly Part[]): Map<string, { id: string; micros: number }[]> {
  const byId = sumByKey(parts.map(({ id = '', ...amounts }) => ({ ...amounts, key: id })))
  const ids = [...byId]
    .sort(([a, amounts], [b, others]) => compare(amounts, others) || (a < b ? -1 : 1))
    .slice(0, MAX_DAY_PARTS)
    .map(([id]) => id)
  const days = Map.groupBy(parts, ({ key }) => key)
  return new Map(
    [...days].map(([day, ofDay]) => {
      const micros = sumByKey(ofDay.map(({ id = '', ...amounts }) => ({ ...amounts, key: id })))
      return [day, ids.flatMap((id) => (micros.has(id) ? [{ id, micros: micros.get(id)?.micros ?? 0 }] : []))]
    }),
  )
}

const compare = (a: Amounts, b: Amounts): number => b.micros - a.micros
