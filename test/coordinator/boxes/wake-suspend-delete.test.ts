// Wake, suspend and delete: the response, and the job for the reconciler.
import t from 'tap'
import { createOperationService } from '../../../coordinator/jobs/operations/service.ts'
import type { ObservedState } from '../../../shared/api/boxes.ts'
import { systemClock as clock } from '../../../shared/clock.ts'
import { onEachDatabase } from '../../support/db.ts'
import { findTarget } from '../../support/owners.ts'
import { addUser, createOwner, createTestBoxService } from '../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  const withBox = async (t: Parameters<typeof newDb>[0], observed: ObservedState) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    const { id } = await boxes.create(owner, { name: 'kiwi' })
    await db.deleteFrom('jobs').execute()
    await db.updateTable('boxes').set({ observed_state: observed }).execute()
    return { db, owner, boxes, id }
  }

  t.test('suspends a box once and wakes it', async (t) => {
    const { db, owner, boxes, id } = await withBox(t, 'running')
    t.match(await boxes.suspend(owner, id), { desiredState: 'suspended', observedState: 'running' })
    const before = await boxes.get(owner, id)
    t.match(before.job, { op: 'suspend', step: 'freeze' })
    t.same(await boxes.suspend(owner, id), before.box, 'suspending again changes nothing')
    t.match(await boxes.wake(owner, id), { desiredState: 'running', observedState: 'running' })
    t.equal((await boxes.get(owner, id)).job, null, 'waking cancels the pending suspend')
    await db.updateTable('boxes').set({ observed_state: 'suspended', desired_state: 'suspended' }).execute()
    await boxes.wake(owner, id)
    t.match((await boxes.get(owner, id)).job, { op: 'wake', step: 'start' })
  })

  t.test('a box that failed to provision cannot be woken', async (t) => {
    const { owner, boxes, id } = await withBox(t, 'provision_failed')
    await t.rejects(boxes.wake(owner, id), { code: 'box_failed' })
    t.match(await boxes.suspend(owner, id), {
      desiredState: 'suspended',
      observedState: 'provision_failed',
    })
    t.equal((await boxes.get(owner, id)).job, null, 'nothing is to be done')
    await t.rejects(boxes.wake(owner, id), { code: 'box_failed' })
    t.match(await boxes.remove(owner, id), { box: { desiredState: 'terminated' } })
  })

  t.test('deleting repeatedly returns the same operation', async (t) => {
    const { db, owner, boxes, id } = await withBox(t, 'running')
    const first = await boxes.remove(owner, id)
    t.match(first, {
      box: { desiredState: 'terminated', observedState: 'running' },
      operation: { kind: 'box_delete', targetId: id, status: 'pending', completedAt: null, error: null },
    })
    t.same(await boxes.remove(owner, id), first)
    const operations = createOperationService({ db, clock, findTarget })
    t.same(await operations.get(owner, first.operation.id), first.operation)
    await t.rejects(boxes.wake(owner, id), { code: 'not_found' })
    await t.rejects(boxes.suspend(owner, id), { code: 'not_found' })
    t.match(await boxes.get(owner, id), { box: { id }, job: { op: 'delete', step: 'collect' } })

    const contractor = await addUser(db, owner, { role: 'contractor' })
    const limited = await addUser(db, owner, { role: 'member', boxIds: [] })
    for (const [actor, operation] of [
      [contractor, first.operation.id],
      [limited, first.operation.id],
      [{ ...owner, workspaceId: 'ws_other' }, first.operation.id],
      [owner, 'dop_unknown'],
      [owner, id],
    ] as const) {
      await t.rejects(operations.get(actor, operation), { code: 'not_found' })
    }
  })

  t.test('deleting a box that is being created replaces its job and keeps the lease', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    const { id } = await boxes.create(owner, {})
    await db.updateTable('jobs').set({ lease_owner: 'coordinator-1' }).execute()
    const { operation } = await boxes.remove(owner, id)
    t.match(await db.selectFrom('jobs').selectAll().execute(), [
      {
        op: 'delete',
        step: 'collect',
        lease_owner: 'coordinator-1',
        operation_id: operation.id,
      },
    ])
  })
})
