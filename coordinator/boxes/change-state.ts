// Wakes, suspends and deletes boxes: writes the desired state, which the reconciler reaches (spec §3, §4.3).
import type { Box, DesiredState } from '../../shared/api/boxes.ts'
import type { Operation } from '../../shared/api/operations.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Admit } from '../admission/admit.ts'
import { recordBoxChange } from '../audit/record-change.ts'
import { lockBox } from '../db/lock-box.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import type { BoxFinder } from '../http/find-box.ts'
import { createOperation, findLatestOperation, presentOperation } from '../jobs/operations/service.ts'
import { enqueueStopInsteadOfFreeze } from './lifecycle/enqueue-jobs.ts'
import { setDesiredState } from './lifecycle/set-desired-state.ts'
import { presentBox } from './present.ts'
import { assertManaged } from './refuse-machines.ts'

/** Runs in the transaction that requests the deletion of a box, before the desired state is written. */
export type DeletionHook = (trx: Trx, box: BoxRow, actor: string, now: number) => Promise<void>

export type StateChangesOptions = {
  db: Db
  clock: Clock
  finder: Pick<BoxFinder, 'lock' | 'lockLive'>
  admit: Admit
  /** Schedules the box for the reconciler. Called after the commit that wrote its desired state or job. */
  schedule(boxId: string): void
  beforeDelete: DeletionHook | undefined
}

export function createStateChanges(options: StateChangesOptions) {
  const { db, clock, finder, admit, schedule, beforeDelete } = options

  /**
   * Throws not_found for a box that is being deleted, which is still readable.
   * @returns `hasChanged`: false when the box has the desired state already
   */
  function changeDesiredState(
    trx: Trx,
    actor: Actor,
    id: string,
    state: DesiredState,
  ): Promise<{ row: BoxRow; hasChanged: boolean }> {
    return transaction(trx, async (trx, onCommit) => {
      const row = await finder.lockLive(trx, actor, id)
      if (state === 'running' && row.observed_state === 'provision_failed') throw new ApiError('box_failed')
      if (state === 'suspended') assertManaged(row, 'suspend')
      // Do not schedule the box: that would interrupt the copying of its files.
      if (row.desired_state === state) return { row, hasChanged: false }
      onCommit(() => schedule(id))
      if (state === 'running') await admit(trx, actor, { action: 'wake', box: row })
      const change = { state, actor: formatActor(actor), now: clock.now() }
      return { row: await setDesiredState(trx, row, change), hasChanged: true }
    })
  }

  const wake = (actor: Actor, id: string, trx?: Trx): Promise<Box> =>
    transaction(trx ?? db, async (trx) => {
      const { row, hasChanged } = await changeDesiredState(trx, actor, id, 'running')
      if (hasChanged) recordBoxChange(trx, 'box.wake', row, { actor, now: clock.now() })
      return presentBox(row)
    })

  const suspend = (actor: Actor, id: string, { stop } = { stop: false }): Promise<Box> =>
    transaction(db, async (trx, onCommit) => {
      const { row, hasChanged } = await changeDesiredState(trx, actor, id, 'suspended')
      const now = clock.now()
      let isStopped = false
      if (stop) {
        onCommit(() => schedule(id))
        const current = await lockBox(trx, id)
        const request = { reason: 'stopped', actor: formatActor(actor), now }
        isStopped = current !== undefined && (await enqueueStopInsteadOfFreeze(trx, current, request))
      }
      if (hasChanged || isStopped) recordBoxChange(trx, 'box.suspend', row, { actor, now }, { stop })
      return presentBox(row)
    })

  function remove(actor: Actor, id: string, trx?: Trx): Promise<{ box: Box; operation: Operation }> {
    return transaction(trx ?? db, async (trx, onCommit) => {
      const row = await finder.lock(trx, actor, id)
      const now = clock.now()
      const earlier = await findLatestOperation(trx, 'box_delete', id)
      if (row.desired_state === 'terminated' && earlier) {
        return { box: presentBox(row), operation: presentOperation(earlier) }
      }
      const { written, operation } = await requestDeletion(trx, row, formatActor(actor), { now })
      if (row.desired_state !== 'terminated') recordBoxChange(trx, 'box.delete', row, { actor, now })
      onCommit(() => schedule(id))
      return { box: presentBox(written), operation: presentOperation(operation) }
    })
  }

  async function removeBySystem(
    trx: Trx,
    box: BoxRow,
    { now, reason }: { now: number; reason: string },
  ): Promise<void> {
    if (box.desired_state === 'terminated') return
    await requestDeletion(trx, box, 'system', { now, reason })
    recordBoxChange(trx, 'box.delete', box, { actor: 'system', now }, { reason })
  }

  async function requestDeletion(
    trx: Trx,
    row: BoxRow,
    actor: string,
    { now, reason }: { now: number; reason?: string },
  ) {
    const { workspace_id: workspaceId, id } = row
    const operation = await createOperation(trx, { workspaceId, kind: 'box_delete', targetId: id, now })
    await beforeDelete?.(trx, row, actor, now)
    const written = await setDesiredState(trx, row, {
      ...{ state: 'terminated', actor, now, operationId: operation.id },
      ...(reason !== undefined && { reason }),
    })
    return { written, operation }
  }

  return { wake, suspend, remove, removeBySystem }
}
