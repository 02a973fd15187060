// Inserts a new box with its create job and its audit event.
import type { Box, CreateBoxRequest } from '../../shared/api/boxes.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Tier } from '../../shared/tiers.ts'
import { recordBoxChange } from '../audit/record-change.ts'
import type { BoxRow, SnapshotRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import { enqueueCreateJob } from '../lifecycle/set-desired-state.ts'
import { chooseRegion, newBoxRow, type RegionRules } from './create.ts'
import { describeNewBox } from './describe-change.ts'
import { pickFreeName } from './names.ts'
import { presentBox } from './present.ts'
import { findFirstOwner, insertBox, listLiveNames } from './store.ts'

export type BoxInserterOptions = {
  clock: Clock
  regions: RegionRules
  schedule(boxId: string): void
  /** See BoxServiceOptions. */
  random: (() => number) | undefined
}

/** The kind of the audit event. A fork takes a snapshot for the new box, so its box is not restored. */
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
      const ownerUserId = actor.userId ?? (await findFirstOwner(trx, actor.workspaceId))
      if (!ownerUserId) throw new Error(`Workspace ${actor.workspaceId} has no owner.`)
      const now = clock.now()
      const row = await insertWithName(trx, input.name, actor.workspaceId, (hostname) =>
        newBoxRow({ input, source, region, actor, ownerUserId, hostname, now }),
      )
      await enqueueCreateJob(trx, row, { actor: formatActor(actor), now })
      recordBoxChange(trx, event, row, { actor, now }, describeNewBox(row, source))
      onCommit(() => schedule(row.id))
      return presentBox(row)
    })
  }

  /** Relies on the unique index: of two concurrent creates with the same name, one succeeds. */
  async function insertWithName(
    trx: Trx,
    name: string | undefined,
    workspaceId: string,
    createRow: (hostname: string) => BoxRow,
  ): Promise<BoxRow> {
    if (name !== undefined) {
      const row = await insertBox(trx, createRow(name))
      if (!row) throw new ApiError('name_taken', `A box named ${name} already exists. Choose another name.`)
      return row
    }
    const taken = await listLiveNames(trx, workspaceId)
    for (;;) {
      const hostname = pickFreeName(taken, random())
      const row = await insertBox(trx, createRow(hostname))
      if (row) return row
      taken.add(hostname)
    }
  }
}
