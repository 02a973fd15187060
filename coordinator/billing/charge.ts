// Charges usage: moves the metered intervals of complete hours to the ledger and to the totals.
import type { Db } from '../db/open.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { post, toEntry } from './ledger.ts'
import { isFree, type PriceTable } from './prices.ts'
import { findAccount, lockAccount, updateAccount } from './store/accounts.ts'
import {
  deleteMeter,
  insertSegment,
  listMeters,
  lockMeter,
  takeSegments,
  upsertMeter,
} from './store/meters.ts'
import type { BillingEntryRow, BillingMeterRow, BillingSegmentRow, BillingTotalRow } from './store/tables.ts'
import { addToTotals } from './store/totals.ts'
import { costOf, splitAtHours, toDay, toMonth } from './usage.ts'

export type ChargeOptions = { db: Db; prices: PriceTable }

/**
 * Charges the usage of the workspace until the hour. The result is the same however often and late it runs: the entries are those
 * of the hours, and each is written once. One transaction per box or snapshot, which does not wait for changes of others.
 * @param until the start of an hour, in epoch seconds
 */
export async function chargeWorkspace(
  { db, prices }: ChargeOptions,
  workspaceId: string,
  until: number,
  signal?: AbortSignal,
): Promise<void> {
  const account = await findAccount(db, workspaceId)
  if (account === undefined || account.charged_until >= until) return
  const meters = await listMeters(db, workspaceId)
  for (const { subject_id: subjectId } of meters) {
    signal?.throwIfAborted()
    await transaction(db, (trx) => chargeSubject(trx, { workspaceId, subjectId, until, prices }))
  }
  await transaction(db, async (trx) => {
    const account = await lockAccount(trx, workspaceId)
    if (account === undefined || account.charged_until >= until) return
    await updateAccount(trx, workspaceId, { charged_until: until })
  })
}

type Charge = { workspaceId: string; subjectId: string; until: number; prices: PriceTable }

async function chargeSubject(trx: Trx, { workspaceId, subjectId, until, prices }: Charge): Promise<void> {
  const account = await lockAccount(trx, workspaceId)
  const meter = await lockMeter(trx, subjectId)
  if (account === undefined || meter === undefined) return
  const segments = await takeSegments(trx, subjectId)
  const { due, later } = divideAt(segments, meter, until)
  for (const segment of later) await insertSegment(trx, segment)
  const { charges, carry } = computeCharges(due, meter.carry, prices)
  const entries = charges.filter(({ micros }) => micros > 0).map(toUsageEntry)
  await addToTotals(trx, sumTotals(charges))
  await post(trx, account, entries)
  if (meter.mode === 'ended' && later.length === 0) return deleteMeter(trx, subjectId)
  await upsertMeter(trx, { ...meter, since: Math.max(meter.since, until), carry })
}

/** @returns the intervals before the instant, in the order of time, and the segments after it */
export function divideAt(
  segments: readonly BillingSegmentRow[],
  meter: BillingMeterRow,
  at: number,
): { due: BillingSegmentRow[]; later: BillingSegmentRow[] } {
  const { carry: _carry, ...open } = meter
  // As in recordReading: what costs nothing is no interval, or entries and totals would depend on when the charge runs.
  const current = isFree(open.mode) ? [] : [{ ...open, until: Math.max(open.since, at) }]
  const due = [...segments, ...current]
    .map((segment) => ({ ...segment, until: Math.min(segment.until, at) }))
    .filter(({ since, until }) => until > since)
  const later = segments
    .filter(({ until }) => until > at)
    .map((segment) => ({ ...segment, since: Math.max(segment.since, at) }))
  return { due, later }
}

/** What a subject costs in one hour for one owner. */
type HourCharge = {
  hour: number
  segment: BillingSegmentRow
  since: number
  until: number
  micros: number
  computeSeconds: number
}

/** @param segments in the order of time */
export function computeCharges(
  segments: readonly BillingSegmentRow[],
  carry: number,
  prices: PriceTable,
): { charges: HourCharge[]; carry: number } {
  const charges: HourCharge[] = []
  let rest = carry
  for (const part of segments.flatMap((segment) => splitAtHours(segment))) {
    const cost = costOf(part, rest, prices)
    rest = cost.carry
    const computeSeconds = part.mode === 'compute' ? part.until - part.since : 0
    const last = charges.at(-1)
    if (last?.hour === part.hour && last.segment.user_id === part.user_id) {
      last.until = part.until
      last.micros += cost.micros
      last.computeSeconds += computeSeconds
    } else {
      const { hour, since, until, ...segment } = part
      charges.push({
        hour,
        segment: { ...segment, since, until },
        since,
        until,
        micros: cost.micros,
        computeSeconds,
      })
    }
  }
  return { charges, carry: rest }
}

/** `since` in the cause: the owner of a box may change within an hour. */
function toUsageEntry({ segment, since, until, micros }: HourCharge): BillingEntryRow {
  return toEntry({
    workspace_id: segment.workspace_id,
    cause: `usage:${segment.subject_id}:${since}`,
    kind: 'usage',
    debit: 'balance',
    credit: 'usage',
    amount_micros: micros,
    box_id: segment.box_id,
    user_id: segment.user_id,
    since,
    until,
    note: segment.subject_id === segment.box_id ? null : segment.subject_id,
    at: until * 1000,
  })
}

function sumTotals(charges: readonly HourCharge[]): BillingTotalRow[] {
  const totals = new Map<string, BillingTotalRow>()
  for (const { hour, segment, micros, computeSeconds } of charges)
    for (const period of [toDay(hour), toMonth(hour)]) {
      const { workspace_id, box_id, user_id } = segment
      const key = `${period} ${user_id}`
      const total = totals.get(key) ?? {
        workspace_id,
        period,
        box_id,
        user_id,
        amount_micros: 0,
        compute_seconds: 0,
      }
      total.amount_micros += micros
      total.compute_seconds += computeSeconds
      totals.set(key, total)
    }
  return [...totals.values()]
}
