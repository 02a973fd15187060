// Deleted boxes are removed with their history when their retention has ended.
import t from 'tap'
import { pruneBoxes } from '../../../coordinator/boxes/prune.ts'
import { onEachDatabase } from '../../support/db.ts'
import { deleteOfBox } from '../../support/owners.ts'
import { createTestBoxService, createTestClock } from '../../support/workspace.ts'
import { finished, output, setUp } from '../history/commands/support.ts'

const DAY_MS = 24 * 60 * 60 * 1000

onEachDatabase(t, async (t, newDb) => {
  const { db, owner, boxId, report, run } = await setUp(await newDb(t))
  const boxes = createTestBoxService(db)
  const { id: kept } = await boxes.create(owner, { name: 'kept' })
  const { id: commandId } = await run()
  await report([output(commandId, 0, 'text'), finished(commandId, { stdoutBytes: 4 })])
  const clock = createTestClock()
  await db
    .updateTable('boxes')
    .set({ observed_state: 'terminated', desired_state: 'terminated', terminated_at: clock.now() })
    .where('id', '=', boxId)
    .execute()
  await db.deleteFrom('jobs').where('box_id', '=', boxId).execute()
  const prune = () => pruneBoxes({ db, clock, retentionDays: 30, deleteOfBox }, new AbortController().signal)

  clock.advance(30 * DAY_MS)
  t.equal(await prune(), 0)
  t.equal((await boxes.list(owner)).length, 2)
  clock.advance(1)
  t.equal(await prune(), 1)
  t.match(await boxes.list(owner), [{ id: kept }])
  for (const table of ['commands', 'command_output'] as const)
    t.same(await db.selectFrom(table).selectAll().execute(), [], table)
  t.match(await db.selectFrom('box_events').selectAll().execute(), [{ box_id: kept }])
})
