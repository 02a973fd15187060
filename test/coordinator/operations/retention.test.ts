// Finished operations are readable for 30 days, and then gone.
import t from 'tap'
import { transaction } from '../../../coordinator/db/transaction.ts'
import {
  createOperation,
  createOperationService,
  operationCompleted,
  operationFailed,
} from '../../../coordinator/operations/service.ts'
import { onEachDatabase } from '../../support/db.ts'
import { boxesOf, ownerOf, testClock } from '../../support/workspace.ts'

const DAY = 24 * 60 * 60 * 1000

onEachDatabase(t, async (t, newDb) => {
  const db = await newDb(t)
  const clock = testClock()
  const owner = await ownerOf(db, clock)
  const box = await boxesOf(db, { clock }).create(owner, {})
  const operations = createOperationService({ db, clock })
  const make = () =>
    transaction(db, (trx) =>
      createOperation(trx, {
        workspaceId: owner.workspaceId,
        kind: 'box_delete',
        targetId: box.id,
        now: clock.now(),
      }),
    )
  const [done, bad, open] = [await make(), await make(), await make()]
  clock.advance(1000)
  await transaction(db, (trx) => operationCompleted(trx, done.id, clock.now()))
  await transaction(db, (trx) => operationFailed(trx, bad.id, 'it broke', clock.now()))
  t.match(await operations.get(owner, done.id), {
    status: 'completed',
    completedAt: '2030-01-01T00:00:01.000Z',
    error: null,
  })
  t.match(await operations.get(owner, bad.id), { status: 'failed', error: 'it broke' })

  clock.advance(30 * DAY)
  t.equal(await operations.prune(), 0)
  await t.resolves(operations.get(owner, done.id))
  clock.advance(1)
  await t.rejects(operations.get(owner, done.id), { code: 'not_found' })
  t.equal(await operations.prune(), 2)
  t.match(await operations.get(owner, open.id), { status: 'pending' }, 'an unfinished one stays')
})
