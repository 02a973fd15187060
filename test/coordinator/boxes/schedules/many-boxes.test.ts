// With many boxes and events, a tick of the schedules reads what is due, and each change is made once.
import { sql } from 'kysely'
import t from 'tap'
import { createPauseGate } from '../../../../coordinator/boxes/schedules/pause-gate.ts'
import {
  type BoxScheduleHandlersOptions,
  createBoxScheduleHandlers,
} from '../../../../coordinator/boxes/schedules/schedules.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import { createScheduler } from '../../../../coordinator/jobs/scheduler.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { capturePlans } from '../../../support/query-plan.ts'
import { createFakeReplica } from '../../../support/replica.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createOwner, createTestBoxService, createTestClock } from '../../../support/workspace.ts'

const BOXES = 500
const EVENTS = 100_000
const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const ROWS_PER_INSERT = 1000

const silent = { info() {}, error() {} }

/** Boxes with all kinds of schedules, due after a year. */
async function insertBoxes(db: Db, now: number): Promise<{ ids: string[] }> {
  const owner = await createOwner(db)
  const { id } = await createTestBoxService(db).create(owner, {})
  const template = await db.selectFrom('boxes').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  await db.deleteFrom('schedules').execute()
  await db.deleteFrom('jobs').execute()
  const boxes = Array.from({ length: BOXES }, (_, number) => ({
    ...template,
    id: crypto.randomUUID(),
    hostname: `box-${number}`,
    observed_state: 'running' as const,
    state_since: now - 30 * DAY_MS,
    created_at: number,
    auto_pause_min: 30,
    auto_snapshot_hours: 24,
    pause_at: now + 365 * DAY_MS,
  }))
  const insertAll = async (table: 'boxes' | 'box_events' | 'schedules', rows: object[]) => {
    for (let from = 0; from < rows.length; from += ROWS_PER_INSERT / 10)
      await db
        .insertInto(table)
        .values(rows.slice(from, from + ROWS_PER_INSERT / 10) as never)
        .execute()
  }
  await insertAll('boxes', boxes)
  await insertAll(
    'box_events',
    Array.from({ length: EVENTS }, (_, number) => ({
      box_id: boxes[number % BOXES]?.id,
      from_state: 'suspended',
      to_state: 'running',
      reason: 'woken',
      actor: 'system',
      at: number,
    })),
  )
  const kinds = ['pause', 'auto_pause', 'auto_snapshot'] as const
  await insertAll(
    'schedules',
    boxes.flatMap(({ id: target_id }) =>
      kinds.map((kind) => ({ kind, target_id, due_at: now + 365 * DAY_MS })),
    ),
  )
  return { ids: boxes.map((box) => box.id) }
}

onEachDatabase(t, async (t, newDb) => {
  const database = await newDb(t)
  const clock = createTestClock()
  const { ids } = await insertBoxes(database, clock.now())
  // As Postgres does by itself.
  await sql`analyze`.execute(database)
  const [first = '', second = '', third = ''] = ids

  const startSchedules = (db: Db, options: Partial<BoxScheduleHandlersOptions> = {}) => {
    const scheduled: string[] = []
    const snapshots: string[] = []
    const schedules = createScheduler({ db, clock, log: silent, replica: createFakeReplica() })
    const handlers = createBoxScheduleHandlers({
      db,
      clock,
      log: silent,
      replica: createFakeReplica(),
      settings: { freezeMs: 60 * MINUTE_MS, deepSleepMs: 14 * DAY_MS },
      tunnels: { current: () => undefined, local: () => undefined },
      pauseGate: createPauseGate(() => false),
      memory: { isUnderMemoryPressure: async () => false },
      findLastActivity: () => null,
      removeBox: async () => undefined,
      scheduleBox: (id) => scheduled.push(id),
      snapshots: {
        async enqueueAutoSnapshot(_trx, box) {
          snapshots.push(box.id)
          return null
        },
      },
      ...options,
    })
    schedules.add(handlers)
    return { schedules, scheduled, snapshots }
  }

  const setDue = (kind: 'pause' | 'auto_snapshot', id: string) =>
    database.transaction().execute(async (trx) => {
      if (kind === 'pause')
        await trx.updateTable('boxes').set({ pause_at: clock.now() }).where('id', '=', id).execute()
      await trx
        .updateTable('schedules')
        .set({ due_at: clock.now() })
        .where('target_id', '=', id)
        .where('kind', '=', kind)
        .execute()
    })
  const readBox = (id: string) =>
    database.selectFrom('boxes').selectAll().where('id', '=', id).executeTakeFirstOrThrow()

  t.test('a tick uses an index for each table, and reads what is due', async (t) => {
    const { db, readPlans } = capturePlans(database)
    const { schedules, scheduled } = startSchedules(db)
    t.teardown(() => schedules.close())
    await setDue('pause', first)
    await schedules.start()
    await waitUntil('the box is suspended', () => scheduled.includes(first))
    await schedules.close()
    t.match(await readBox(first), { desired_state: 'suspended', pause_at: null })
    t.same(scheduled, [first], 'only the box that is due')
    const plans = await readPlans()
    t.ok(
      plans.some((plan) => plan.includes('schedules_by_due_time')),
      'due schedules are found by their time',
    )
    const tables = /\b(boxes|box_events|schedules|jobs|snapshots|snapshot_jobs)\b/
    for (const plan of plans.filter((line) => tables.test(line)))
      t.notMatch(plan, /^(SCAN (?!.*USING (COVERING )?INDEX)|Seq Scan|Bitmap)/, plan)
    // A scan of an index reads all its entries, unless it is limited to a range.
    for (const plan of plans.filter((line) => line.startsWith('SCAN'))) t.match(plan, /CONSTANT|SCALAR/, plan)
  })

  t.test('a tick without due schedules runs one query for them, and one for the next due time', async (t) => {
    const { db, readPlans } = capturePlans(database)
    const { schedules } = startSchedules(db)
    t.teardown(() => schedules.close())
    await schedules.start()
    await readPlans()
    const queries: string[] = []
    await waitUntil('the tick has run', async () => {
      queries.push(...(await readPlans()))
      return queries.filter((line) => line.includes('schedules_by_due_time')).length >= 2
    })
    t.notOk(queries.some((line) => /\b(boxes|box_events|jobs|snapshots)\b/.test(line)))
  })

  t.test('two evaluations at the same time make each change once', async (t) => {
    const coordinators = [startSchedules(database), startSchedules(database)]
    t.teardown(() => Promise.all(coordinators.map(({ schedules }) => schedules.close())))
    await setDue('pause', second)
    await setDue('auto_snapshot', second)
    await Promise.all(coordinators.map(({ schedules }) => schedules.start()))
    const all = (key: 'scheduled' | 'snapshots') => coordinators.flatMap((coordinator) => coordinator[key])
    await waitUntil('the schedules have run', async () => {
      const due = await database
        .selectFrom('schedules')
        .select('kind')
        .where('due_at', '<=', clock.now())
        .execute()
      return due.length === 0 && all('scheduled').length >= 2
    })
    await Promise.all(coordinators.map(({ schedules }) => schedules.close()))
    t.same(all('scheduled'), [second, second], 'one suspend and one snapshot')
    t.same(all('snapshots'), [second])
    t.match(await readBox(second), { desired_state: 'suspended', pause_at: null })
  })

  t.test('a change that fails is rolled back with its due time, and made once later', async (t) => {
    let failures = 2
    const taken: string[] = []
    const { schedules } = startSchedules(database, {
      snapshots: {
        async enqueueAutoSnapshot(trx, box) {
          // Written before the failure, as by a coordinator that is killed before the commit.
          await trx.updateTable('boxes').set({ hostname: 'written' }).where('id', '=', box.id).execute()
          if (failures-- > 0) throw new Error('killed')
          taken.push(box.id)
          return null
        },
      },
    })
    t.teardown(() => schedules.close())
    const { hostname } = await readBox(third)
    await setDue('auto_snapshot', third)
    await schedules.start()
    for (const remaining of [1, 0]) {
      await waitUntil('the change has failed', () => failures === remaining)
      await waitUntil('the schedule has been moved', async () => {
        const row = await database
          .selectFrom('schedules')
          .select('due_at')
          .where('target_id', '=', third)
          .where('kind', '=', 'auto_snapshot')
          .executeTakeFirstOrThrow()
        return row.due_at > clock.now()
      })
      t.equal((await readBox(third)).hostname, hostname, 'rolled back')
      clock.advance(MINUTE_MS)
      schedules.runDue()
    }
    await waitUntil('the snapshot is taken', () => taken.length > 0)
    await schedules.close()
    t.same(taken, [third])
  })
})
