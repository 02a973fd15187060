// Finished operations are readable for 30 days, then deleted.
import t from 'tap'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import {
  completeOperation,
  createOperation,
  createOperationService,
  failOperation,
} from '../../../../coordinator/jobs/operations/service.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { findTarget } from '../../../support/owners.ts'
import { createOwner, createTestBoxService, createTestClock } from '../../../support/workspace.ts'

const DAY = 24 * 60 * 60 * 1000

onEachDatabase(t, async (t, newDb) => {
  const db = await newDb(t)
  const clock = createTestClock()
  const owner = await createOwner(db, clock)
  const box = await createTestBoxService(db, { clock }).create(owner, {})
  const operations = createOperationService({ db, clock, findTarget })
  const create = () =>
    transaction(db, (trx) =>
      createOperation(trx, {
        workspaceId: owner.workspaceId,
        kind: 'box_delete',
        targetId: box.id,
        now: clock.now(),
      }),
    )
  const [completed, failed, pending] = [await create(), await create(), await create()]
  clock.advance(1000)
  await transaction(db, (trx) => completeOperation(trx, completed.id, clock.now()))
  await transaction(db, (trx) => failOperation(trx, failed.id, 'simulated failure', clock.now()))
  t.match(await operations.get(owner, completed.id), {
    status: 'completed',
    completedAt: '2030-01-01T00:00:01.000Z',
    error: null,
  })
  t.match(await operations.get(owner, failed.id), { status: 'failed', error: 'simulated failure' })

  clock.advance(30 * DAY)
  t.equal(await operations.prune(), 0)
  await t.resolves(operations.get(owner, completed.id))
  clock.advance(1)
  await t.rejects(operations.get(owner, completed.id), { code: 'not_found' })
  t.equal(await operations.prune(), 2)
  t.match(await operations.get(owner, pending.id), { status: 'pending' }, 'an unfinished operation stays')
})
