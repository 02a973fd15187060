// Wake, suspend and delete: what the answer says and what is left for the reconciler.
import t from 'tap'
import { createOperationService } from '../../../coordinator/operations/service.ts'
import type { ObservedState } from '../../../shared/api/boxes.ts'
import { systemClock as clock } from '../../../shared/clock.ts'
import { onEachDatabase } from '../../support/db.ts'
import { boxesOf, join, ownerOf } from '../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  const withBox = async (t: Parameters<typeof newDb>[0], observed: ObservedState) => {
    const db = await newDb(t)
    const owner = await ownerOf(db)
    const boxes = boxesOf(db)
    const { id } = await boxes.create(owner, { name: 'kiwi' })
    await db.deleteFrom('jobs').execute()
    await db.updateTable('boxes').set({ observed_state: observed }).execute()
    return { db, owner, boxes, id }
  }

  t.test('suspend, twice, and wake', async (t) => {
    const { db, owner, boxes, id } = await withBox(t, 'running')
    t.match(await boxes.suspend(owner, id), { desiredState: 'suspended', observedState: 'running' })
    const before = await boxes.get(owner, id)
    t.match(before.job, { op: 'suspend', step: 'stop' })
    t.same(await boxes.suspend(owner, id), before.box, 'a second one changes nothing')
    t.match(await boxes.wake(owner, id), { desiredState: 'running', observedState: 'running' })
    t.equal((await boxes.get(owner, id)).job, null, 'nothing is left to do')
    await db.updateTable('boxes').set({ observed_state: 'suspended', desired_state: 'suspended' }).execute()
    await boxes.wake(owner, id)
    t.match((await boxes.get(owner, id)).job, { op: 'wake', step: 'start' })
  })

  t.test('a box that could not be provisioned takes nothing but delete', async (t) => {
    const { owner, boxes, id } = await withBox(t, 'provision_failed')
    await t.rejects(boxes.wake(owner, id), { code: 'box_failed' })
    await t.rejects(boxes.suspend(owner, id), { code: 'box_failed' })
    t.match(await boxes.remove(owner, id), { box: { desiredState: 'terminated' } })
  })

  t.test('delete answers with an operation, the same one each time', async (t) => {
    const { db, owner, boxes, id } = await withBox(t, 'running')
    const first = await boxes.remove(owner, id)
    t.match(first, {
      box: { desiredState: 'terminated', observedState: 'running' },
      operation: { kind: 'box_delete', targetId: id, status: 'pending', completedAt: null, error: null },
    })
    t.same(await boxes.remove(owner, id), first)
    const operations = createOperationService({ db, clock })
    t.same(await operations.get(owner, first.operation.id), first.operation)
    await t.rejects(boxes.wake(owner, id), { code: 'not_found' })
    await t.rejects(boxes.suspend(owner, id), { code: 'not_found' })
    t.match(await boxes.get(owner, id), { box: { id }, job: { op: 'delete', step: 'destroy' } })

    const stranger = await join(db, owner, { role: 'contractor' })
    const limited = await join(db, owner, { role: 'member', boxIds: [] })
    for (const [actor, operation] of [
      [stranger, first.operation.id],
      [limited, first.operation.id],
      [{ ...owner, workspaceId: 'ws_other' }, first.operation.id],
      [owner, 'dop_unknown'],
      [owner, id],
    ] as const) {
      await t.rejects(operations.get(actor, operation), { code: 'not_found' })
    }
  })

  t.test('a delete of a box that is being made takes over its job, and keeps who is at it', async (t) => {
    const db = await newDb(t)
    const owner = await ownerOf(db)
    const boxes = boxesOf(db)
    const { id } = await boxes.create(owner, {})
    await db.updateTable('jobs').set({ lease_owner: 'somebody', lease_until: 9e12 }).execute()
    const { operation } = await boxes.remove(owner, id)
    t.match(await db.selectFrom('jobs').selectAll().execute(), [
      {
        op: 'delete',
        step: 'destroy',
        lease_owner: 'somebody',
        lease_until: 9e12,
        operation_id: operation.id,
      },
    ])
  })
})
