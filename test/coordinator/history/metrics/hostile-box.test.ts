// A hostile box costs a bounded amount, and harms only its own series. Damaged rows do not stop anything.
import t from 'tap'
import { type MetricsSample, metricsSampleSchema } from '../../../../shared/api/metrics.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { createSeededRandom } from '../../../support/random.ts'
import { type Setup, sample, setUp } from './support.ts'

const HOUR = 3600
const DAY = 24 * HOUR
const MAX_HOUR_BYTES = 128 * 1024
const MAX_DAY_BYTES = 512 * 1024

const getNow = ({ clock }: Setup) => Math.floor(clock.now() / 1000)

/** Incompressible values in as many groups as a sample may have, whose names change with each sample. */
function createLargeSampler(): (start: number) => MetricsSample {
  const random = createSeededRandom(1)
  const integer = () => Math.floor(random() * 2 ** 50)
  const name = () => integer().toString(36).padEnd(256, '\u4e00')
  return (start) =>
    metricsSampleSchema.parse(
      sample(
        start,
        {
          cpu_pct: random() * 100,
          mem_used_bytes: integer(),
          load1: random() * 1e6,
          process_count: Math.floor(random() * 1e9),
          disk_write_bytes_per_sec: integer(),
        },
        {
          fs: Array.from({ length: 16 }, () => ({
            mount: name(),
            used_bytes: integer(),
            total_bytes: integer(),
            read_bytes_per_sec: integer(),
            write_bytes_per_sec: integer(),
          })),
          ifaces: Array.from({ length: 16 }, () => ({
            name: name(),
            rx_bytes_per_sec: integer(),
            tx_bytes_per_sec: integer(),
          })),
        },
      ),
    )
}

t.test('the schema rejects lies, and replaces control characters in names', async (t) => {
  const valid = sample(0)
  for (const invalid of [
    { ...valid, start: 31 },
    { ...valid, start: -30 },
    { ...valid, start: 2 ** 60 },
    { ...valid, values: { ...valid.values, cpu_pct: -1 } },
    { ...valid, values: { ...valid.values, cpu_pct: 101 } },
    { ...valid, values: { ...valid.values, cpu_pct: '5' } },
    { ...valid, values: { ...valid.values, mem_used_bytes: -1 } },
    { ...valid, values: { ...valid.values, mem_used_bytes: 2 ** 53 } },
    { ...valid, values: { ...valid.values, process_count: 1e12 } },
    { ...valid, values: {} },
    { ...valid, fs: Array(17).fill({}) },
    { ...valid, ifaces: [{ name: 'x'.repeat(257), rx_bytes_per_sec: 1, tx_bytes_per_sec: 1 }] },
  ])
    t.notOk(metricsSampleSchema.safeParse(invalid).success, JSON.stringify(invalid).slice(0, 80))
  const ifaces = [{ name: '\u001b[2Jeth0\n', rx_bytes_per_sec: 1, tx_bytes_per_sec: 1 }]
  t.equal(metricsSampleSchema.parse({ ...valid, ifaces }).ifaces[0]?.name, '\ufffd[2Jeth0\ufffd')
})

onEachDatabase(t, async (t, newDb) => {
  t.test('enormous samples with changing names cost a bounded number of bytes', async (t) => {
    const setup = await setUp(await newDb(t))
    const { db, clock, report, get, owner, boxId } = setup
    const other = await setup.createBox()
    const sampleAt = createLargeSampler()
    const now = getNow(setup)
    await report([sample(now - 60)], other)
    // All samples of two hours, and one of each hour of the day before.
    for (let start = now - DAY; start < now - 2 * HOUR; start += HOUR) await report([sampleAt(start)])
    for (let start = now - 2 * HOUR; start < now; start += 60 * 30)
      await report(Array.from({ length: 60 }, (_, i) => sampleAt(start + i * 30)))
    clock.advance(HOUR * 1000)
    await report([sampleAt(getNow(setup))])
    const rows = await db.selectFrom('metric_chunks').selectAll().where('box_id', '=', boxId).execute()
    t.ok(rows.length <= 26 + 2 + 2, `${rows.length} chunks`)
    for (const { res, data } of rows)
      t.ok(data.length < (res === 30 ? MAX_HOUR_BYTES : MAX_DAY_BYTES), `${res}: ${data.length} bytes`)
    for (const span of [HOUR, DAY, 30 * DAY]) {
      const metrics = await get(owner, boxId, { from: clock.now() - span * 1000 })
      t.ok(metrics.fs.length <= 32 && metrics.ifaces.length <= 32, `${metrics.fs.length} file systems`)
    }
    const { series, fs } = await get(owner, other, { to: (now + 1) * 1000 })
    t.equal(series.cpu_pct.avg.filter((value) => value !== null).length, 1)
    t.same(fs, [])
  })

  t.test('samples of many different hours are limited, but not those of the current hour', async (t) => {
    const setup = await setUp(await newDb(t))
    const { db, report, logged, boxId } = setup
    const other = await setup.createBox()
    const now = getNow(setup)
    const starts = Array.from({ length: 29 * 24 }, (_, i) => now - 29 * DAY + i * HOUR)
    for (let i = 0; i < starts.length; i += 116)
      await report([...starts.slice(i, i + 116), now - 30 * i].map((start) => sample(start)))
    const count = async (id: string) =>
      Number(
        (
          await db
            .selectFrom('metric_chunks')
            .select((eb) => eb.fn.countAll().as('count'))
            .where('box_id', '=', id)
            .where('res', '=', 30)
            .executeTakeFirstOrThrow()
        ).count,
      )
    t.ok((await count(boxId)) <= 240, `${await count(boxId)} hours`)
    t.equal(logged.length, 1, 'one log line')
    setup.clock.advance(60_000)
    await report([sample(now + 30)])
    const { series } = await setup.get(setup.owner, boxId, {})
    t.equal(series.cpu_pct.avg.at(-1), 50, 'the current hour is stored')
    await report([sample(now - DAY)], other)
    t.equal(await count(other), 1, 'another box has its own limit')
  })

  t.test('samples of the future and expired ones are skipped, with one log line per hour', async (t) => {
    const setup = await setUp(await newDb(t))
    const { clock, report, logged, db } = setup
    const now = getNow(setup)
    for (const start of [now + 90, now + 10 * DAY, now - 30 * DAY - 30, 0]) await report([sample(start)])
    t.same(await db.selectFrom('metric_chunks').selectAll().execute(), [])
    t.equal(logged.length, 1)
    clock.advance(HOUR * 1000)
    await report([sample(now + 2 * DAY)])
    t.equal(logged.length, 2)
    await report([sample(now + HOUR + 60)])
    t.equal((await db.selectFrom('metric_chunks').selectAll().execute()).length, 1, 'up to a minute ahead')
  })

  t.test('a damaged chunk is a gap that is logged once, and is replaced by new samples', async (t) => {
    const setup = await setUp(await newDb(t))
    const { db, clock, report, get, owner, boxId, logged } = setup
    const now = getNow(setup)
    await report([now - 2 * HOUR, now - HOUR, now].map((start) => sample(start)))
    const values = async (span: number) =>
      (
        await get(owner, boxId, { from: (now - span) * 1000, to: (now + 60) * 1000 })
      ).series.cpu_pct.avg.filter((value) => value !== null).length
    clock.advance(60_000)
    t.equal(await values(3 * HOUR), 3)
    const damage = async (res: number, start: number, data: Uint8Array) =>
      db
        .updateTable('metric_chunks')
        .set({ data })
        .where('res', '=', res)
        .where('start', '=', start)
        .execute()
    const [row] = await db.selectFrom('metric_chunks').selectAll().where('start', '=', now).execute()
    const truncated = (row?.data ?? Buffer.from('')).subarray(0, 8)
    for (const data of [Buffer.from('damaged'), Buffer.from(''), truncated]) {
      logged.splice(0)
      setup.restart()
      await damage(30, now - HOUR, data)
      t.equal(await values(3 * HOUR), 2)
      t.equal(await values(3 * HOUR), 2)
      t.match(logged, [{ boxId, res: 30, start: now - HOUR }])
      t.equal(logged.length, 1)
    }
    await report([sample(now - HOUR + 30)])
    t.equal(await values(3 * HOUR), 3)
    await damage(300, now - DAY, truncated)
    await t.resolves(report([sample(now - HOUR + 60)]))
    t.ok((await values(DAY)) >= 1)
  })
})
