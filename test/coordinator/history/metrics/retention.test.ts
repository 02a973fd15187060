// Metrics are deleted after 30 days, also those of boxes that do not report any more, and with their box.
import t from 'tap'
import { pruneBoxes } from '../../../../coordinator/boxes/prune.ts'
import { pruneMetrics } from '../../../../coordinator/history/metrics/retention.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { deleteOfBox } from '../../../support/owners.ts'
import { sample, setUp } from './support.ts'

const HOUR = 3600
const DAY = 24 * HOUR
const signal = new AbortController().signal

onEachDatabase(t, async (t, newDb) => {
  t.test('prunes chunks of every resolution when all of their buckets have expired', async (t) => {
    const { db, clock, report, createBox, get, owner, boxId } = await setUp(await newDb(t))
    const silent = await createBox()
    const start = clock.now() / 1000
    for (const id of [boxId, silent]) await report([sample(start), sample(start - HOUR)], id)
    const list = async () =>
      (
        await db
          .selectFrom('metric_chunks')
          .select(['res', 'start'])
          .where('box_id', '=', silent)
          .orderBy('start')
          .execute()
      ).map(({ res }) => res)
    t.same((await list()).sort(), [30, 30, 300, 3600])
    const prune = () => pruneMetrics({ db, clock }, signal)
    t.equal(await prune(), 0)
    clock.advance(30 * DAY * 1000 - 1000)
    t.equal(await prune(), 0, 'the last sample of an hour has not expired')
    await report([sample(clock.now() / 1000 - 29)])
    clock.advance(1000)
    t.equal(await prune(), 2 + 2, 'the older hour of both boxes, and its rollup of the day')
    clock.advance(HOUR * 1000)
    t.equal(await prune(), 2)
    clock.advance(10 * DAY * 1000)
    await prune()
    t.same(await list(), [])
    const { series } = await get(owner, boxId, { from: clock.now() - 30 * DAY * 1000 })
    t.ok(series.cpu_pct.avg.includes(50), 'the other box keeps its newer samples')
  })

  t.test('prunes in batches, until it is stopped', async (t) => {
    const { db, clock, report } = await setUp(await newDb(t))
    await report([sample(clock.now() / 1000)])
    const row = await db.selectFrom('metric_chunks').selectAll().executeTakeFirstOrThrow()
    for (let i = 1; i <= 1200; i += 1)
      await db
        .insertInto('metric_chunks')
        .values({ ...row, start: row.start - i * HOUR })
        .execute()
    clock.advance(31 * DAY * 1000)
    t.equal(await pruneMetrics({ db, clock }, AbortSignal.abort()), 0)
    t.equal(await pruneMetrics({ db, clock }, signal), 1201)
  })

  t.test('a pruned box takes its metrics and process snapshots with it', async (t) => {
    const { db, clock, report, createBox, boxId } = await setUp(await newDb(t))
    const kept = await createBox()
    for (const id of [boxId, kept]) {
      await report([sample(clock.now() / 1000)], id)
      await db
        .insertInto('process_chunks')
        .values({ box_id: id, start: 0, data: Buffer.from('x') })
        .execute()
    }
    await db.deleteFrom('jobs').execute()
    await db.updateTable('boxes').set({ terminated_at: 1 }).where('id', '=', boxId).execute()
    t.equal(await pruneBoxes({ db, clock, retentionDays: 30, deleteOfBox }, signal), 1)
    for (const table of ['metric_chunks', 'process_chunks'] as const)
      t.match(await db.selectFrom(table).select('box_id').execute(), [{ box_id: kept }], table)
  })
})
