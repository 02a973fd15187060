// The series equal a plain computation over the samples, whatever happens between the box and the database.
import t, { type Test } from 'tap'
import {
  BOX_SERIES,
  FILE_SYSTEM_SERIES,
  INTERFACE_SERIES,
  type Metrics,
  type MetricsSample,
  type MetricsValues,
  type Series,
} from '../../../../shared/api/metrics.ts'
import { SAMPLE_SECONDS } from '../../../../shared/report-limits.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { createSeededRandom } from '../../../support/random.ts'
import { createTestClock } from '../../../support/workspace.ts'
import { type SequencedSample, type Setup, sample, setUp } from './support.ts'

const HOUR = 3600
const DAY = 24 * HOUR
const SEEDS = [1, 2]

/** The samples that the coordinator must have stored: the first of each bucket. */
type Truth = Map<number, MetricsSample>

/** Random values that change at every step, in multiples of the unit in which they are stored. */
function createSampler(random: () => number): (start: number) => MetricsSample {
  const value = (max: number, step: number) =>
    random() < 0.03 ? null : Math.round(Math.round((random() * max) / step) * step * 100) / 100
  const count = (max: number) => (random() < 0.03 ? null : Math.round(random() * max))
  return (start) => {
    const hour = Math.floor(start / HOUR)
    const fs = [{ mount: '/home', hasThroughput: true }]
    if (hour % 3 === 0) fs.push({ mount: `/mnt/${hour % 7}`, hasThroughput: false })
    const ifaces = [{ name: 'eth0' }]
    if (random() < 0.1) ifaces.push({ name: `veth${hour % 5}` })
    return sample(
      start,
      {
        cpu_pct: value(100, 0.1),
        cpu_count: 2,
        mem_used_bytes: count(2 ** 20) === null ? null : Math.round(random() * 2 ** 20) * 1024,
        mem_total_bytes: 2 ** 31 + 1,
        load1: hour % 2 === 0 ? null : value(8, 0.01),
        load5: value(8, 0.01),
        process_count: count(300),
        listener_count: count(5),
        disk_read_bytes_per_sec: count(10 ** 8),
        disk_write_bytes_per_sec: random() < 0.5 ? 0 : count(10 ** 9),
      },
      {
        fs: fs.map(({ mount, hasThroughput }) => ({
          mount,
          used_bytes: Math.round(random() * 10 ** 7) * 512,
          total_bytes: 10 ** 11,
          read_bytes_per_sec: hasThroughput ? count(10 ** 6) : null,
          write_bytes_per_sec: hasThroughput ? count(10 ** 6) : null,
        })),
        ifaces: ifaces.map(({ name }) => ({
          name,
          rx_bytes_per_sec: count(10 ** 6),
          tx_bytes_per_sec: count(10 ** 6),
        })),
      },
    )
  }
}

/** Simulates a box and its coordinator for `seconds`. Adds what must be stored to `truth`. */
function createSimulation(setup: Setup, random: () => number, truth: Truth) {
  const sampleAt = createSampler(random)
  let epoch = 0
  let seq = 0
  /** Not acknowledged yet. */
  let spool: SequencedSample[] = []
  let lastAppliedSeq = 0
  let disconnectedUntil = 0
  const now = () => Math.floor(setup.clock.now() / 1000)
  const append = (start: number) => spool.push({ seq: ++seq, report: sampleAt(start) })

  async function deliver(): Promise<void> {
    const sent = spool.slice(0, 1 + Math.floor(random() * 60))
    await setup.apply(sent, `epoch${epoch}`)
    for (const { seq, report } of sent) {
      if (seq <= lastAppliedSeq) continue
      lastAppliedSeq = seq
      const isValid = report.start <= setup.clock.now() / 1000 + 60 && report.start > now() - 30 * DAY
      if (isValid && !truth.has(report.start)) truth.set(report.start, report)
    }
    // Without an acknowledgement the box sends the same reports again.
    if (random() < 0.8) spool = spool.slice(sent.length)
  }

  async function run(seconds: number): Promise<void> {
    const end = now() + seconds
    while (now() < end) {
      setup.clock.advance(SAMPLE_SECONDS * 1000)
      const start = now() - (now() % SAMPLE_SECONDS) - SAMPLE_SECONDS
      const event = random()
      if (event < 0.002) setup.clock.advance(Math.floor(random() * 3 * HOUR) * 1000)
      else if (event < 0.004) {
        epoch += 1
        spool = []
      } else if (event < 0.006) disconnectedUntil = now() + Math.floor(random() * 4 * HOUR)
      else if (event < 0.012) setup.restart()
      if (random() < 0.03) continue
      append(start)
      // The clock of the box is set back, or forward.
      if (random() < 0.02) append(start - Math.floor(random() * 400) * SAMPLE_SECONDS)
      if (random() < 0.02) append(start + Math.floor(random() * 400) * SAMPLE_SECONDS)
      if (random() < 0.005) append(start - 31 * DAY)
      if (random() < 0.02) spool.push({ seq: ++seq, report: spool[0]?.report ?? sampleAt(start) })
      if (now() >= disconnectedUntil && random() < 0.25) await deliver()
    }
    while (spool.length > 0) await deliver()
  }
  return { run }
}

type Expected = { avg: number | null; max: number | null }

function computePlainly(values: readonly (number | null | undefined)[]): Expected {
  const known = values.filter((value) => value !== null && value !== undefined)
  if (known.length === 0) return { avg: null, max: null }
  return { avg: known.reduce((a, b) => a + b) / known.length, max: Math.max(...known) }
}

/** Returns the buckets whose values differ from the plain computation. */
function findDifferences(
  actual: MetricsValues,
  expected: readonly Expected[],
  { res, step }: { res: number; step: number },
) {
  if (actual.avg.length !== expected.length || actual.max.length !== expected.length)
    return [`${actual.avg.length} buckets instead of ${expected.length}`]
  return expected.flatMap(({ avg, max }, i) => {
    const [actualAvg, actualMax] = [actual.avg[i] ?? null, actual.max[i] ?? null]
    const isAvgRight =
      avg === null || actualAvg === null
        ? avg === actualAvg
        : res === SAMPLE_SECONDS
          ? avg === actualAvg
          : Math.abs(avg - actualAvg) <= step / 2 + 1e-6
    return isAvgRight && max === actualMax ? [] : [{ i, avg, actualAvg, max, actualMax }]
  })
}

/** Compares the response with the samples. Returns the number of buckets with a sample. */
function assertEqualsTruth(t: Test, metrics: Metrics, truth: Truth, range: { from: number; to: number }) {
  const { res, buckets } = metrics
  const [first, end] = [Math.floor(range.from / res) * res, Math.ceil(range.to / res) * res]
  t.same(
    buckets,
    Array.from({ length: (end - first) / res }, (_, i) => first + i * res),
    'buckets',
  )
  const samplesByBucket = buckets.map((bucket) =>
    Array.from({ length: res / SAMPLE_SECONDS }, (_, i) => truth.get(bucket + i * SAMPLE_SECONDS)).filter(
      (found) => found !== undefined,
    ),
  )
  const compare = (
    name: string,
    series: Record<string, Series>,
    actual: Record<string, unknown>,
    select: (sample: MetricsSample) => Record<string, unknown> | undefined,
  ) => {
    for (const [key, { step }] of Object.entries(series)) {
      const expected = samplesByBucket.map((samples) =>
        computePlainly(samples.map((one) => select(one)?.[key] as number | null | undefined)),
      )
      const differences = findDifferences(actual[key] as MetricsValues, expected, { res, step })
      t.same(differences.slice(0, 3), [], `${name} ${key} at ${res} s`)
    }
  }
  compare('box', BOX_SERIES, metrics.series, ({ values }) => values)
  const all = samplesByBucket.flat()
  const mounts = [...new Set(all.flatMap(({ fs }) => fs.map(({ mount }) => mount)))].sort()
  t.same(
    metrics.fs.map(({ mount }) => mount),
    mounts,
    'file systems',
  )
  for (const entry of metrics.fs)
    compare(entry.mount, FILE_SYSTEM_SERIES, entry, ({ fs }) => fs.find((one) => one.mount === entry.mount))
  const names = all.flatMap(({ ifaces }) =>
    ifaces.filter((one) => one.rx_bytes_per_sec !== null || one.tx_bytes_per_sec !== null),
  )
  t.same(
    metrics.ifaces.map(({ name }) => name),
    [...new Set(names.map(({ name }) => name))].sort(),
    'interfaces',
  )
  for (const entry of metrics.ifaces)
    compare(entry.name, INTERFACE_SERIES, entry, ({ ifaces }) =>
      ifaces.find((one) => one.name === entry.name),
    )
  return samplesByBucket.filter((samples) => samples.length > 0).length
}

onEachDatabase(t, async (t, newDb) => {
  for (const seed of SEEDS) {
    t.test(`seed ${seed}`, async (t) => {
      const random = createSeededRandom(seed)
      // Not at the start of an hour, day or period of ten days.
      const clock = createTestClock(Date.UTC(2030, 0, 1, 5, 17, 3) + seed * 7 * DAY * 1000)
      const setup = await setUp(await newDb(t), clock)
      const truth: Truth = new Map()
      const simulation = createSimulation(setup, random, truth)
      const check = async (from: number, to: number, res: number) => {
        const metrics = await setup.get(setup.owner, setup.boxId, { from: from * 1000, to: to * 1000 })
        t.equal(metrics.res, res)
        return assertEqualsTruth(t, metrics, truth, { from, to })
      }
      const now = () => Math.floor(clock.now() / 1000)

      await simulation.run(26 * HOUR)
      clock.advance(9 * DAY * 1000)
      await simulation.run(3 * HOUR)
      clock.advance(2 * DAY * 1000)
      await simulation.run(3 * HOUR)

      let found = 0
      for (let i = 0; i < 40; i += 1) {
        const from = now() - Math.floor(random() * 13 * DAY)
        found += await check(from, Math.min(now(), from + Math.ceil(random() * 6 * HOUR)), 30)
      }
      const start = Math.min(...truth.keys())
      found += await check(start, start + 6 * HOUR, 30)
      found += await check(start - 7, start + 26 * HOUR, 300)
      found += await check(now() - 3 * DAY, now(), 300)
      found += await check(now() - 30 * DAY, now(), 3600)
      t.ok(found > 1000, `${found} buckets have samples`)
    })
  }
})
