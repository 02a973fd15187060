// The nearest process snapshot of a box: which one is found, who may read it, and how long it is stored.
import { inflateSync } from 'node:zlib'
import t from 'tap'
import { pruneBoxes } from '../../../../coordinator/boxes/prune.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { deleteOfBox } from '../../../support/owners.ts'
import { capturePlans } from '../../../support/query-plan.ts'
import { addUser } from '../../../support/workspace.ts'
import { DAY, HOUR, MINUTE, processOf, reportOf, reportsAt, setUp, snapshotOf } from './support.ts'

const signal = new AbortController().signal
const NONE = /^There is no process snapshot within five minutes of/

onEachDatabase(t, async (t, newDb) => {
  t.test('finds the nearest snapshot within five minutes, on either side', async (t) => {
    const { clock, report, findTime } = await setUp(await newDb(t))
    // The end of one stored period and the start of the next one.
    const midnight = clock.now()
    clock.advance(HOUR)
    t.match(await findTime(midnight), /None is stored; a running box takes one every minute\.$/)
    const [before, after] = [midnight - 2 * MINUTE, midnight + 6 * MINUTE]
    await report(reportsAt(before, after))
    t.equal(await findTime(before - 5 * MINUTE), before)
    t.equal(await findTime(after + 5 * MINUTE), after)
    t.equal(await findTime(midnight + 2 * MINUTE - 1), before)
    t.equal(await findTime(midnight + 2 * MINUTE), before, 'of two equally near ones: the earlier')
    t.equal(await findTime(midnight + 2 * MINUTE + 1), after)
    t.equal(
      await findTime(before - 5 * MINUTE - 1),
      'There is no process snapshot within five minutes of 2029-12-31T23:52:59.999Z. The nearest: 2029-12-31T23:58:00.000Z.',
    )
    await report(reportsAt(midnight + 30 * MINUTE))
    t.match(
      await findTime(midnight + 15 * MINUTE),
      /The nearest: 2030-01-01T00:06:00.000Z and 2030-01-01T00:30:00.000Z\.$/,
    )
    t.match(await findTime(253_402_300_799_999), /The nearest: 2030-01-01T00:30:00.000Z\.$/)
    t.match(await findTime(0), /The nearest: 2029-12-31T23:58:00.000Z\.$/)
  })

  t.test('a delta without the snapshot before it is dropped, until the next complete snapshot', async (t) => {
    const { clock, boxId, owner, snapshots, report, findTime } = await setUp(await newDb(t))
    const times = [1, 11, 21, 31, 41].map((minute) => clock.now() + minute * MINUTE)
    clock.advance(HOUR)
    const tables = times.map((_, i) => snapshotOf(processOf(1), processOf(10 + i)))
    const [first = 0, , lost = 0, , complete = 0] = times
    const deltaOf = (i: number) => {
      const previous = { at: times[i - 1] ?? 0, snapshot: tables[i - 1] ?? snapshotOf() }
      return reportOf(times[i] ?? 0, tables[i] ?? snapshotOf(), previous)
    }
    const last = reportOf(complete, tables[4] ?? snapshotOf())
    await report([reportOf(first, tables[0] ?? snapshotOf()), deltaOf(1), deltaOf(3), last])
    const found = []
    for (const time of times) found.push(await findTime(time))
    t.match(found, [times[0], times[1], NONE, NONE, times[4]])
    const { procs } = await snapshots.procsAt.get(owner, boxId, complete)
    t.same(
      procs.map(({ pid }) => pid),
      [1, 14],
    )
    await report([deltaOf(2)])
    t.match(await findTime(lost), NONE, 'it arrives after a newer snapshot')
  })

  t.test('a snapshot is never replaced, and one of the future or of the past is dropped', async (t) => {
    const { clock, boxId, owner, snapshots, logged, report, findTime } = await setUp(await newDb(t))
    const now = clock.now()
    const pidsAt = async (time: number) =>
      (await snapshots.procsAt.get(owner, boxId, time)).procs.map(({ pid }) => pid)
    await report([reportOf(now, snapshotOf(processOf(1)))])
    await report([reportOf(now, snapshotOf(processOf(2)))])
    t.same(await pidsAt(now), [1])
    await report(reportsAt(now + MINUTE, now + MINUTE + 1, now - 30 * DAY, now - 30 * DAY - 1))
    t.equal(await findTime(now + 4 * MINUTE), now + MINUTE)
    t.equal(await findTime(now - 30 * DAY - MINUTE), now - 30 * DAY)
    t.match(logged, [{ boxId, message: /^dropped a process snapshot/ }])
    t.equal(logged.length, 1)
    clock.advance(HOUR)
    await report(reportsAt(now + DAY))
    t.equal(logged.length, 2)
  })

  t.test('a workspace with zero data retention stores no command lines', async (t) => {
    const { db, clock, boxId, owner, snapshots, report } = await setUp(await newDb(t))
    await db.updateTable('workspaces').set({ zero_data_retention: 1 }).execute()
    const at = clock.now()
    const processes = snapshotOf(processOf(1, { command: 'login --password s3cret' }))
    await report([reportOf(at, processes)])
    const more = snapshotOf(
      ...[...processes.processes.values()].map(({ process }) => process),
      processOf(2, { command: 's3cret' }),
    )
    await report([reportOf(at + 1, more, { at, snapshot: processes })])
    t.match(await snapshots.procsAt.get(owner, boxId, at + 1), {
      procs: [
        { pid: 1, name: 'sh', command: null },
        { pid: 2, name: 'sh', command: null },
      ],
    })
    const stored = await db.selectFrom('process_chunks').select('data').execute()
    t.equal(stored.length, 1)
    for (const { data } of stored) t.notMatch(inflateSync(data).toString(), 's3cret')
  })

  t.test('only those who may see the box read its snapshots', async (t) => {
    const { db, clock, boxId, owner, boxes, snapshots, report } = await setUp(await newDb(t))
    await report(reportsAt(clock.now()))
    const other = await boxes.create(owner, {})
    await report(reportsAt(clock.now() - 3 * MINUTE), other.id)
    const limited = await addUser(db, owner, { role: 'member', boxIds: [boxId] })
    t.equal((await snapshots.procsAt.get(limited, boxId, clock.now())).procs.length, 1)
    for (const actor of [
      { ...owner, workspaceId: 'ws_other' },
      await addUser(db, owner, { role: 'contractor' }),
      await addUser(db, owner, { role: 'member', boxIds: [other.id] }),
    ])
      await t.rejects(snapshots.procsAt.get(actor, boxId, clock.now()), {
        code: 'not_found',
        message: /^No such box/,
      })
    await t.rejects(snapshots.procsAt.get(limited, other.id, clock.now()), { code: 'not_found' })
  })

  t.test('snapshots are stored for 30 days, also of a box that does not report any more', async (t) => {
    const { db, clock, report, findTime, snapshots } = await setUp(await newDb(t))
    const first = clock.now()
    const last = first + 4 * HOUR
    clock.advance(4 * HOUR)
    await report(reportsAt(first, last))
    clock.advance(30 * DAY)
    t.equal(await snapshots.prune(signal), 0)
    t.equal(await findTime(first), first)
    clock.advance(1000)
    t.equal(await snapshots.prune(signal), 1)
    t.match(await findTime(first), NONE)
    t.equal(await findTime(last), last)
    clock.advance(4 * HOUR)
    t.equal(await snapshots.prune(signal), 1)
    t.same(await db.selectFrom('process_chunks').select('start').execute(), [])
  })

  t.test('a prune deletes the chunks of many boxes', async (t) => {
    const { db, clock, owner, boxes, boxId, report, snapshots } = await setUp(await newDb(t))
    await report(reportsAt(clock.now()))
    const { id } = await boxes.create(owner, {})
    const data = (await db.selectFrom('process_chunks').select('data').executeTakeFirstOrThrow()).data
    const start = clock.now() / 1000
    for (let i = 1; i <= 450; i++)
      await db
        .insertInto('process_chunks')
        .values({ box_id: i % 2 ? id : boxId, start: start - i * 14_400, data })
        .execute()
    clock.advance(31 * DAY)
    t.equal(await snapshots.prune(AbortSignal.abort()), 0)
    t.equal(await snapshots.prune(signal), 451)
  })

  t.test('a deleted box stays readable until it is removed with its snapshots', async (t) => {
    const { db, clock, boxId, boxes, owner, report, findTime } = await setUp(await newDb(t))
    const at = clock.now()
    await report(reportsAt(at))
    await boxes.remove(owner, boxId)
    await db.deleteFrom('jobs').execute()
    await db.updateTable('boxes').set({ observed_state: 'terminated', terminated_at: at }).execute()
    t.equal(await findTime(at), at)
    clock.advance(DAY + 1)
    t.equal(await pruneBoxes({ db, clock, retentionDays: 1, deleteOfBox }, signal), 1)
    t.match(await findTime(at), /^No such box/)
    t.same(await db.selectFrom('process_chunks').select('box_id').execute(), [])
  })

  t.test('a damaged chunk is a gap and one line in the log, and is replaced', async (t) => {
    const { db, clock, boxId, logged, report, findTime } = await setUp(await newDb(t))
    const start = clock.now()
    clock.advance(2 * HOUR)
    await report(reportsAt(start - MINUTE, start, start + 10 * MINUTE))
    const chunks = db
      .selectFrom('process_chunks')
      .select(['start', 'data'])
      .where('start', '=', start / 1000)
    const { data } = await chunks.executeTakeFirstOrThrow()
    const flipped = Buffer.from(data)
    flipped.writeUInt8(flipped.readUInt8(20) ^ 0x10, 20)
    const { deflateSync } = await import('node:zlib')
    for (const damaged of [
      flipped,
      Buffer.from(data).subarray(0, 30),
      Buffer.alloc(0),
      Buffer.from('not compressed'),
      deflateSync('2\n[0,0,[],[],[]]'),
      deflateSync('1\n{"at":0}'),
      deflateSync('1\n[600000,1,[],[],[]'),
      deflateSync(Buffer.alloc(20_000_000)),
    ]) {
      await db
        .updateTable('process_chunks')
        .set({ data: damaged })
        .where('start', '=', start / 1000)
        .execute()
      logged.length = 0
      clock.advance(HOUR)
      t.match(await findTime(start + 10 * MINUTE), NONE)
      t.equal(await findTime(start), start - MINUTE, 'the chunk before it is readable')
      t.match(logged, [{ boxId, message: 'stored process snapshots are damaged', start: start / 1000 }])
      t.equal(logged.length, 1)
      await report(reportsAt(start + 10 * MINUTE))
      t.equal(await findTime(start + 10 * MINUTE), start + 10 * MINUTE)
    }
  })

  t.test('reading and storing snapshots touches only the chunks of the box', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    const { clock, report, findTime, snapshots } = await setUp(db)
    /** SQLite: the method and the conditions in one line. Postgres: in two. */
    const planOf = async () =>
      (await readPlans())
        .filter((line) => /(scan|search) .*process_chunks|Index Cond.*start/i.test(line))
        .join('\n')
    await readPlans()
    const SEARCH =
      /SEARCH process_chunks USING INDEX \S+ \(box_id=\? AND start.*\)|Index Scan (?:Backward )?using process_chunks_pk on .*\nIndex Cond: \(\(box_id = .* AND \(start .*\)/g
    await report(reportsAt(clock.now()))
    const expectSearches = async (count: number) => {
      const plan = await planOf()
      t.equal(plan.match(SEARCH)?.length, count, plan)
      t.equal(plan.replaceAll(SEARCH, '').trim(), '')
    }
    await expectSearches(2)
    await findTime(clock.now())
    await expectSearches(1)
    await findTime(clock.now() + HOUR)
    await expectSearches(3)
    await snapshots.prune(signal)
    t.match(await planOf(), /process_chunks_by_age/)
  })
})
