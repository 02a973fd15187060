// Inserts a new box with its create job and its audit event.
import type { Box, CreateBoxRequest } from '../../shared/api/boxes.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Tier } from '../../shared/tiers.ts'
import { recordBoxChange } from '../audit/record-change.ts'
import type { SnapshotRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import { findFirstOwnerId } from '../identity/lookups.ts'
import { chooseRegion, newBoxRow, type RegionRules } from './create.ts'
import { describeNewBox } from './describe-change.ts'
import { insertWithName } from './insert-with-name.ts'
import { enqueueCreateJob } from './lifecycle/set-desired-state.ts'
import { presentBox } from './present.ts'

export type BoxInserterOptions = {
  clock: Clock
  regions: RegionRules
  schedule(boxId: string): void
  /** See BoxServiceOptions. */
  random: (() => number) | undefined
}

/** The kind of the audit event. A fork records `box.create`: it copies a box, and the client does not restore a snapshot. */
export type CreateEvent = 'box.create' | 'snapshot.restore'

export function createBoxInserter({ clock, regions, schedule, random = Math.random }: BoxInserterOptions) {
  return function insertNewBox(
    trx: Trx,
    actor: Actor,
    input: Omit<CreateBoxRequest, 'name'> & { name?: string | undefined; tier: Tier },
    source: SnapshotRow | null,
    event: CreateEvent,
  ): Promise<Box> {
    return transaction(trx, async (trx, onCommit) => {
      const region = chooseRegion(source?.region ?? input.region, regions)
      const ownerUserId = actor.userId ?? (await findFirstOwnerId(trx, actor.workspaceId))
      if (!ownerUserId) throw new Error(`Workspace ${actor.workspaceId} has no owner.`)
      const now = clock.now()
      const { workspaceId } = actor
      const row = await insertWithName(trx, { workspaceId, name: input.name, random }, (hostname) =>
        newBoxRow({ input, source, region, actor, ownerUserId, hostname, now }),
      )
      await enqueueCreateJob(trx, row, { actor: formatActor(actor), now })
      recordBoxChange(trx, event, row, { actor, now }, describeNewBox(row, source))
      onCommit(() => schedule(row.id))
      return presentBox(row)
    })
  }
}
