// Meters what exists when billing is turned on, and ends all meters when it is turned off.
import { listBoxesToMeter, listSnapshotsToMeter } from '../boxes/lookups.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import { listWorkspaceIds } from '../identity/lookups.ts'
import { readBox, readSnapshot, recordReading } from './meter.ts'
import type { FinanceService } from './service.ts'
import { listOpenMeters } from './store/meters.ts'

/** Opens the accounts. A box that has a meter keeps it: its changes were metered while they were made. */
export async function meterExisting(
  db: Db,
  finances: Pick<FinanceService, 'load'>,
  now: number,
): Promise<void> {
  for (const workspaceId of await listWorkspaceIds(db)) {
    const boxes = await listBoxesToMeter(db, workspaceId)
    const snapshots = await listSnapshotsToMeter(db, workspaceId)
    await transaction(db, async (trx) => {
      await finances.load(trx, workspaceId)
      for (const reading of [...boxes.map(readBox), ...snapshots.map(readSnapshot)])
        await recordReading(trx, { ...reading, at: now })
    })
  }
}

/** What was used until now is charged when billing is turned on again. */
export async function endAllMeters(db: Db, now: number): Promise<void> {
  for (const { since: _since, carry: _carry, ...meter } of await listOpenMeters(db))
    await transaction(db, (trx) => recordReading(trx, { ...meter, mode: 'ended', at: now }))
}
