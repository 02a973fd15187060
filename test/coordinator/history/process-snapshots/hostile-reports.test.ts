// Reports of a hostile box: they cost a bounded amount, and harm only the snapshots of this box.
import t from 'tap'
import {
  MAX_CHUNK_BYTES,
  MAX_CHUNK_SNAPSHOTS,
} from '../../../../coordinator/history/process-snapshots/chunk.ts'
import {
  type ProcessSnapshotReport,
  processSnapshotReportSchema,
} from '../../../../shared/api/process-snapshots.ts'
import { MAX_DELTA_CHARS, MAX_SNAPSHOT_PROCESSES } from '../../../../shared/report-limits.ts'
import { createSeededRandom } from '../../../support/random.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'
import {
  DAY,
  HOUR,
  MINUTE,
  processOf,
  reportOf,
  reportsAt,
  type Setup,
  setUp,
  snapshotOf,
} from './support.ts'

const complete = (at: number, delta: string): ProcessSnapshotReport => ({
  type: 'processes.snapshot',
  at,
  previousAt: null,
  delta,
})
const empty = { added: [], removed: [], usage: [], total: 0 }

async function countStored({ db, boxId }: Setup): Promise<{ chunks: number; bytes: number }> {
  const rows = await db.selectFrom('process_chunks').select('data').where('box_id', '=', boxId).execute()
  return { chunks: rows.length, bytes: rows.reduce((sum, { data }) => sum + data.length, 0) }
}

t.test('invalid deltas are dropped, with one line in the log', async (t) => {
  const setup = await setUp(await sqliteForTest(t))
  const { clock, boxId, logged, report, findTime } = setup
  const at = clock.now()
  const process = processOf(1)
  const many = Array.from({ length: MAX_SNAPSHOT_PROCESSES + 1 }, (_, i) => i)
  const invalid: unknown[] = [
    null,
    [],
    'x',
    {},
    { ...empty, added: [[1]] },
    { ...empty, added: [[...process.slice(0, 2), 1e300, ...process.slice(3)]] },
    { ...empty, added: [[-1, ...process.slice(1)]] },
    { ...empty, added: [[1.5, ...process.slice(1)]] },
    { ...empty, added: [[...process.slice(0, 5), 'x'.repeat(257)]] },
    { ...empty, added: many.map((pid) => processOf(pid)) },
    { ...empty, removed: many },
    { ...empty, removed: [2 ** 31] },
    { ...empty, usage: [[1, -1]] },
    { ...empty, usage: [[1, 1e10]] },
    { ...empty, usage: [[1, 1, 2 ** 41]] },
    { ...empty, total: -1 },
    { ...empty, total: 2 ** 53 },
    { ...empty, ports: [[0, 1, 'x']] },
    { ...empty, ports: [[65_536, 1, 'x']] },
  ]
  const texts = [
    ...invalid.map((value) => JSON.stringify(value)),
    '',
    'not JSON',
    '{"added":',
    '['.repeat(MAX_DELTA_CHARS),
    `{"added":[${'[],'.repeat(50_000)}[]]}`,
    `{"total":${'9'.repeat(MAX_DELTA_CHARS - 100)}}`,
    JSON.stringify({ ...empty, usage: [[1, null]] }).replace('null', '1e999'),
  ]
  for (const text of texts) {
    const parsed = processSnapshotReportSchema.parse(complete(at, text))
    await report([parsed])
    t.match(await findTime(at), /^There is no process snapshot/, text.slice(0, 100))
  }
  t.match(logged, [{ boxId, problem: String }])
  t.equal(logged.length, 1)
  t.same(await countStored(setup), { chunks: 0, bytes: 0 })
  await report([reportOf(at, snapshotOf(process))])
  t.equal(await findTime(at), at, 'a valid report after them is stored')
  t.throws(() => processSnapshotReportSchema.parse(complete(at, ' '.repeat(MAX_DELTA_CHARS + 1))))
})

t.test('control characters are replaced, and numbers stay in their range', async (t) => {
  const { clock, boxId, owner, snapshots, report } = await setUp(await sqliteForTest(t))
  const at = clock.now()
  const added = [[1, 0, 253_402_300_799_999, 'a\u001b[31m', '\u0000\n', '\u202e\ud800']]
  const usage = [
    [1, 1e9, 2 ** 40],
    [7, 1, 1],
  ]
  await report([
    complete(
      at,
      JSON.stringify({ added, removed: [9], usage, ports: [[1, null, '\u0007']], total: 2 ** 50 }),
    ),
  ])
  const { procs, ports, total } = await snapshots.procsAt.get(owner, boxId, at)
  t.match(procs, [
    { user: 'a\ufffd[31m', name: '\ufffd\ufffd', command: '\ufffd\ufffd', memBytes: 2 ** 50, cpuPct: 1e8 },
  ])
  t.equal(procs.length, 1)
  t.same([ports[0]?.process, total], ['\ufffd', 2 ** 50])
  // The memory of a process grows beyond the maximum, and below zero.
  const growth = (kib: number) => JSON.stringify({ ...empty, usage: [[1, 0, kib]] })
  await report([{ ...complete(at + 1, growth(2 ** 40)), previousAt: at }])
  await report([{ ...complete(at + 2, growth(-(2 ** 40))), previousAt: at + 1 }])
  await report([{ ...complete(at + 3, growth(-(2 ** 40))), previousAt: at + 2 }])
  for (const [ms, expected] of [
    [1, 2 ** 50],
    [2, 0],
    [3, 0],
  ] as const)
    t.equal((await snapshots.procsAt.get(owner, boxId, at + ms)).procs[0]?.memBytes, expected)
})

t.test('processes beyond the maximum, added by several deltas, are left out', async (t) => {
  const { clock, boxId, owner, snapshots, report } = await setUp(await sqliteForTest(t))
  const at = clock.now()
  for (let i = 0; i < 5; i++) {
    const added = Array.from({ length: MAX_SNAPSHOT_PROCESSES }, (_, j) => processOf(i * 1000 + j))
    const delta = JSON.stringify({ ...empty, added, total: 1_000_000 })
    await report([{ ...complete(at + i, delta), previousAt: i === 0 ? null : at + i - 1 }])
  }
  const { procs, total } = await snapshots.procsAt.get(owner, boxId, at + 4)
  t.equal(procs.length, MAX_SNAPSHOT_PROCESSES)
  t.equal(total, 1_000_000)
})

t.test('the snapshots of a few hours are bounded in number and size', async (t) => {
  const setup = await setUp(await sqliteForTest(t))
  const { db, clock, report, logged, findTime } = setup
  const start = clock.now()
  clock.advance(4 * HOUR)
  for (let i = 0; i < 600; i += 100)
    await report(reportsAt(...Array.from({ length: 100 }, (_, j) => start + i + j)))
  t.equal(
    await findTime(start + 9 * MINUTE),
    'There is no process snapshot within five minutes of 2030-01-01T00:09:00.000Z. The nearest: 2030-01-01T00:00:00.479Z.',
  )
  t.equal(MAX_CHUNK_SNAPSHOTS, 480)

  const random = createSeededRandom(1)
  for (const [name, firstCode, codes] of [
    ['ASCII', 0x21, 90],
    ['three bytes per character', 0x4e00, 20_000],
  ] as const) {
    await db.deleteFrom('process_chunks').execute()
    const character = () => String.fromCharCode(firstCode + Math.floor(random() * codes))
    for (let i = 0; i < 30; i++) {
      const command = () => Array.from({ length: 100 }, character).join('')
      const processes = Array.from({ length: 400 }, (_, pid) => processOf(pid, { command: command() }))
      await report([reportOf(start + i * MINUTE, snapshotOf(...processes))])
    }
    const { bytes, chunks } = await countStored(setup)
    t.equal(chunks, 1, name)
    t.ok(bytes > 500_000 && bytes <= MAX_CHUNK_BYTES, `${name}: ${bytes} bytes`)
    t.equal(await findTime(start), start, name)
  }
  t.match(logged.at(-1)?.problem, /too large/)
})

t.test('many snapshots all over a month change few chunks at once', async (t) => {
  const setup = await setUp(await sqliteForTest(t))
  const { clock, boxId, boxes, owner, logged, report, findTime, snapshots } = setup
  const random = createSeededRandom(2)
  const other = await boxes.create(owner, {})
  const times = () => Array.from({ length: 128 }, () => clock.now() - Math.floor(random() * 30 * DAY))
  for (let batch = 1; batch <= 20; batch++) {
    await report(reportsAt(...times()))
    const { chunks } = await countStored(setup)
    t.ok(chunks <= 3 * batch, `${chunks} chunks after ${batch} batches`)
  }
  t.equal(logged.length, 1)
  await report(reportsAt(clock.now()), other.id)
  t.equal(
    (await snapshots.procsAt.get(owner, other.id, clock.now())).procs.length,
    1,
    'another box is not affected',
  )
  await report(reportsAt(clock.now()), boxId)
  t.equal(await findTime(clock.now()), clock.now())
})

t.test('a box that rewrites large chunks without pause is refused for some time', async (t) => {
  const setup = await setUp(await sqliteForTest(t))
  const { clock, boxId, boxes, owner, logged, report, findTime } = setup
  const start = clock.now()
  const processes = Array.from({ length: 900 }, (_, pid) => processOf(pid, { command: `${pid}`.repeat(30) }))
  await report([reportOf(start, snapshotOf(...processes))])
  let accepted = 0
  const usage = Array.from({ length: 900 }, (_, pid) => [pid, 1, 1])
  for (let i = 1; i < 470; i++) {
    const delta = JSON.stringify({ ...empty, usage })
    await report([{ ...complete(start + i, delta), previousAt: start + i - 1 }])
    if ((await findTime(start + i)) === start + i) accepted += 1
    else break
  }
  t.ok(accepted > 50 && accepted < 400, `${accepted} accepted`)
  t.match(logged, [{ boxId, problem: /too many/ }])
  const other = await boxes.create(owner, {})
  await report(reportsAt(start), other.id)
  t.equal(logged.length, 1)
  clock.advance(3 * MINUTE)
  await report(reportsAt(clock.now()))
  t.equal(await findTime(clock.now()), clock.now(), 'later it is accepted again')
})
