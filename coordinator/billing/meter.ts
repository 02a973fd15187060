// Meters boxes and snapshots: stores the interval that a change of their rows ends, in the transaction of the change.
import type { DesiredState, ObservedState } from '../../shared/api/boxes.ts'
import type { Clock } from '../../shared/clock.ts'
import { findBox, findSnapshot } from '../boxes/lookups.ts'
import type { RowObserver } from '../db/row-changes.ts'
import type { BoxRow, SnapshotRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import { isFree } from './prices.ts'
import { insertSegment, lockMeter, upsertMeter } from './store/meters.ts'
import type { BillingMeterRow, MeterMode } from './store/tables.ts'

/** What is charged for a subject from `at` on, in milliseconds since the epoch. */
type Reading = Omit<BillingMeterRow, 'since' | 'carry'> & { at: number }

/** A box costs nothing until it runs for the first time, and from the start of its deletion on. */
export function modeOf(observed: ObservedState, desired: DesiredState): MeterMode {
  switch (observed) {
    case 'requested':
    case 'provisioning':
    case 'bootstrapping':
      return desired === 'running' ? 'launching' : 'ended'
    case 'running':
    case 'degraded':
    case 'resizing':
    case 'suspending':
      return 'compute'
    case 'migrating':
      return desired === 'running' ? 'compute' : 'disk'
    case 'waking':
      return 'waking'
    case 'suspended':
    case 'deep_sleep':
      return desired === 'running' ? 'waking' : 'disk'
    case 'provision_failed':
    case 'terminating':
    case 'terminated':
      return 'ended'
  }
}

/** Machines cost nothing: their owner has them. */
export const readBox = (box: BoxRow): Reading => ({
  subject_id: box.id,
  workspace_id: box.workspace_id,
  box_id: box.id,
  user_id: box.owner_user_id,
  mode: box.kind === 'machine' ? 'ended' : modeOf(box.observed_state, box.desired_state),
  tier: box.tier,
  megabytes: 0,
  at: box.updated_at,
})

const BYTES_PER_MB = 1000 ** 2

/** A snapshot costs something while it is available, and each started MB of its files counts. */
export const readSnapshot = (snapshot: SnapshotRow): Reading => ({
  subject_id: snapshot.id,
  workspace_id: snapshot.workspace_id,
  box_id: snapshot.box_id,
  user_id: snapshot.owner_user_id,
  mode: snapshot.status === 'available' && snapshot.transient === 0 ? 'snapshot' : 'ended',
  tier: snapshot.tier,
  megabytes: Math.ceil((snapshot.content_bytes ?? 0) / BYTES_PER_MB),
  at: snapshot.updated_at,
})

/** Stores the reading. Idempotent. The time of a meter never decreases. */
export async function recordReading(trx: Trx, { at, ...next }: Reading): Promise<void> {
  const meter = await lockMeter(trx, next.subject_id)
  if (meter === undefined ? next.mode === 'ended' : isSame(meter, next)) return
  const since = Math.max(meter?.since ?? 0, Math.floor(at / 1000))
  if (meter !== undefined && since > meter.since && !isFree(meter.mode)) {
    const { carry: _carry, ...segment } = meter
    await insertSegment(trx, { ...segment, until: since })
  }
  await upsertMeter(trx, { ...next, since, carry: meter?.carry ?? 0 })
}

const isSame = (meter: BillingMeterRow, next: Omit<Reading, 'at'>): boolean =>
  meter.mode === next.mode &&
  meter.tier === next.tier &&
  meter.megabytes === next.megabytes &&
  meter.user_id === next.user_id

/** The observer of changed rows (db/row-changes.ts). */
export function createMeterObserver(clock: Clock): RowObserver {
  /** The row of the subject has been deleted. */
  async function end(trx: Trx, subjectId: string): Promise<void> {
    const meter = await lockMeter(trx, subjectId)
    if (meter !== undefined) await recordReading(trx, { ...meter, mode: 'ended', at: clock.now() })
  }

  return async (trx, { table, id }) => {
    if (table === 'boxes') {
      const box = await findBox(trx, id)
      await (box ? recordReading(trx, readBox(box)) : end(trx, id))
    } else if (table === 'snapshots') {
      const snapshot = await findSnapshot(trx, id)
      await (snapshot ? recordReading(trx, readSnapshot(snapshot)) : end(trx, id))
    }
  }
}
