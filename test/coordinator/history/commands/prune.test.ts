// Pruning of several boxes: each on its own.
import t from 'tap'
import { createCommandPruner } from '../../../../coordinator/history/commands/prune.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'
import { createTestBoxService } from '../../../support/workspace.ts'
import { finished, setUp } from './support.ts'

const DAY = 24 * 60 * 60 * 1000

t.test('a box that cannot be pruned does not stop the others, and is retried', async (t) => {
  const { db, clock, owner, boxId, report, run } = await setUp(await sqliteForTest(t))
  const other = await createTestBoxService(db, { clock }).create(owner, {})
  const runAndFinish = async () => {
    const { id } = await run()
    await report([finished(id)])
    return id
  }
  const listIds = async () =>
    (await db.selectFrom('commands').select('id').orderBy('requested_at').execute()).map(({ id }) => id)
  const expired = await runAndFinish()
  clock.advance(31 * DAY)
  const [old, unreadable, otherOld, otherNew] = [
    await runAndFinish(),
    await runAndFinish(),
    await runAndFinish(),
    await runAndFinish(),
  ]
  await db.updateTable('commands').set({ box_id: other.id }).where('id', 'in', [otherOld, otherNew]).execute()
  // SQLite cannot return this number, so reading the sizes of the box fails.
  await db
    .updateTable('commands')
    .set({ stdout_bytes: 2 ** 53 })
    .where('id', '=', unreadable)
    .execute()

  const failed: string[] = []
  const pruner = createCommandPruner({
    ...{ db, clock, retention: { days: 30, records: 1, outputBytes: 1000 } },
    onError: (_error, id) => void failed.push(id),
  })
  for (const id of [boxId, other.id]) pruner.recordGrowth(id, 0, 0)
  t.equal(await pruner.prune(), 2)
  t.same(failed, [boxId])
  t.same(await listIds(), [old, unreadable, otherNew], `${expired} expired`)

  await db.updateTable('commands').set({ stdout_bytes: 0 }).execute()
  t.equal(await pruner.prune(), 1)
  t.same(await listIds(), [unreadable, otherNew])
  await pruner.close()
})
