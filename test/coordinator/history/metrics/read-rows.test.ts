// A query reads only the chunks of its box, however many boxes there are.
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { dialectTraits } from '../../../../coordinator/db/dialects.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import { pruneMetrics } from '../../../../coordinator/history/metrics/retention.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { capturePlans } from '../../../support/query-plan.ts'
import { captureSelects, countingSqliteForTest } from '../../../support/read-rows.ts'
import { type Setup, sample, setUp } from './support.ts'

const HOUR = 3600
const DAY = 24 * HOUR
const SPANS = { '1 hour': HOUR, '24 hours': DAY, '30 days': 30 * DAY }

const query = ({ clock, get, owner, boxId }: Setup, span: number) =>
  get(owner, boxId, { from: clock.now() - span * 1000, to: clock.now() })

/** One sample per hour, for 30 days. The last is of less than an hour ago. */
async function reportMonth({ clock, report }: Setup): Promise<void> {
  const now = Math.floor(clock.now() / 1000)
  const starts = Array.from({ length: 30 * 24 }, (_, i) => now - 30 * DAY + (i + 1) * HOUR)
  for (let i = 0; i < starts.length; i += 100) {
    await report(starts.slice(i, i + 100).map((start) => sample(start)))
    // Within the limit of hours per box.
    clock.advance(200_000)
  }
}

onEachDatabase(t, async (t, newDb) => {
  t.test('plans use the key of the box, and the indexes of pending and old chunks', async (t) => {
    const base = await newDb(t)
    const { db, readPlans } = capturePlans(base)
    const setup = await setUp(db)
    await reportMonth(setup)
    await copyBox(base, setup.boxId, 9)
    if (dialectTraits(db).locksRows) await sql`analyze metric_chunks`.execute(base)
    await readPlans()
    /** SQLite: the method and the conditions in one line. Postgres: in two. */
    const planOf = async () =>
      (await readPlans()).filter((line) => /metric_chunks|Index Cond/i.test(line)).join('\n')
    const RANGE =
      /SEARCH metric_chunks USING INDEX \S+ \(box_id=\? AND res=\? AND start>\? AND start<\?\)|Index Scan (?:Backward )?using metric_chunks_pk on metric_chunks.*\nIndex Cond: \(\(box_id = .* AND \(res = .* AND \(start >= .* AND \(start < .*/
    const PENDING =
      /SEARCH metric_chunks USING INDEX metric_chunks_pending \(box_id=\?\)|Index Scan using metric_chunks_pending on metric_chunks.*\nIndex Cond: \(box_id = .*/
    for (const [name, span] of Object.entries(SPANS)) {
      await query(setup, span)
      const plan = await planOf()
      t.match(plan, RANGE, `${name}: ${plan}`)
      const rest = plan.replace(RANGE, '')
      if (span > HOUR) t.match(rest, PENDING, `${name}: ${rest}`)
      t.equal(rest.replace(PENDING, '').trim(), '', `${name}: no other scan`)
    }
    await pruneMetrics({ db, clock: setup.clock }, new AbortController().signal)
    const plan = await planOf()
    t.match(plan, /metric_chunks_by_age/)
    t.notMatch(plan, /SCAN metric_chunks|Seq Scan/)
  })

  t.test('1000 boxes with 30 days: a query reads as many rows as with 10', async (t) => {
    const created = await newDb(t)
    const isPostgres = dialectTraits(created).locksRows
    const base = isPostgres ? created : await countingSqliteForTest(t)
    const captured = captureSelects(base, 'metric_chunks')
    const setup = await setUp(captured.db)
    await reportMonth(setup)
    await copyBox(base, setup.boxId, 9)
    if (isPostgres) await sql`analyze metric_chunks`.execute(base)
    const withFewBoxes = await countRowsOfSpans(t, setup, captured)
    await copyBox(base, setup.boxId, 990)
    if (isPostgres) await sql`analyze metric_chunks`.execute(base)
    t.same(await countRowsOfSpans(t, setup, captured), withFewBoxes)
    t.match(withFewBoxes, { '1 hour': 2, '24 hours': 2 })
    t.ok((withFewBoxes['30 days'] ?? 0) <= 6, `${withFewBoxes['30 days']} rows for 30 days`)
  })
})

async function countRowsOfSpans(t: Test, setup: Setup, captured: ReturnType<typeof captureSelects>) {
  const counts: Record<string, number> = {}
  for (const [name, span] of Object.entries(SPANS)) {
    captured.discard()
    const { series } = await query(setup, span)
    t.ok(series.cpu_pct.avg.includes(50), `${name}: the response has values`)
    counts[name] = await captured.countRows()
  }
  return counts
}

/** Copies the box with its chunks. Without checks of foreign keys, which take most of the time. */
async function copyBox(db: Db, id: string, copies: number): Promise<void> {
  const box = await db.selectFrom('boxes').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  const hostname = `copy-${copies}`
  await db.transaction().execute(async (trx) => {
    if (dialectTraits(db).locksRows) await sql`set local session_replication_role = replica`.execute(trx)
    for (let i = 0; i < copies; i += 1)
      await trx
        .insertInto('boxes')
        .values({ ...box, id: crypto.randomUUID(), hostname, terminated_at: 1 })
        .execute()
    await sql`insert into metric_chunks (box_id, res, start, pending_rollup, data)
      select boxes.id, chunks.res, chunks.start, chunks.pending_rollup, chunks.data
      from metric_chunks chunks cross join boxes
      where chunks.box_id = ${id} and boxes.hostname = ${hostname}`.execute(trx)
  })
}
