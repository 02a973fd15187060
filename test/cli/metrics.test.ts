// box metrics: figures, sparklines and time axis; JSON, CSV, time spans and gaps.
import t from 'tap'
import { formatMetrics } from '../../cli/metrics/format-metrics.ts'
import { averageColumns, formatSparkline } from '../../cli/metrics/sparkline.ts'
import { isUnicodeSupported } from '../../cli/output/unicode-support.ts'
import {
  BOX_SERIES,
  FILE_SYSTEM_SERIES,
  INTERFACE_SERIES,
  type Metrics,
  metricsSchema,
} from '../../shared/api/metrics.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'])
const respondWith = (metrics: Metrics) => coordinator.respondNext('GET /api/v1/boxes/', 200, metrics)
// Also of the child processes.
process.env.TZ = 'Europe/Berlin'
const ENV = { LC_ALL: 'C.UTF-8' }
const runMetrics = (...args: string[]) => runBox(coordinator, ['metrics', 'fig', ...args], { env: ENV })
/** The coordinator has measured HOUR. */
const box = (...args: string[]) => {
  respondWith(HOUR)
  return runMetrics(...args)
}
const getLastQuery = () =>
  Object.fromEntries(new URLSearchParams(coordinator.requests.at(-1)?.line.replace(/^[^?]*\??/, '') ?? ''))

const GiB = 1024 ** 3
/** 120 buckets of 30 seconds; no samples in the buckets 60 to 79. */
const sampled = (get: (index: number) => number) => (index: number) =>
  index >= 60 && index < 80 ? null : get(index)
const HOUR = createMetrics(
  { from: '2026-01-31T09:00:00Z', res: 30, count: 120 },
  {
    box: {
      cpu_pct: sampled((index) => (index < 60 ? 0 : 50)),
      cpu_count: sampled(() => 2),
      mem_used_bytes: sampled(() => 1.5 * GiB),
      mem_total_bytes: sampled(() => 2 * GiB),
      process_count: sampled((index) => 10 + (index % 2)),
      disk_write_bytes_per_sec: sampled(() => 2048),
    },
    fs: {
      '/home/用户\u001b[2J,"x"': { used_bytes: sampled(() => GiB), total_bytes: sampled(() => 10 * GiB) },
    },
    ifaces: { eth0: { rx_bytes_per_sec: sampled(() => 3 * 1024 * 1024) } },
  },
)
const lines = (width: number, isUnicode = true) =>
  formatMetrics('fig', HOUR, { width, isUnicode }).split('\n')
const findLine = (all: string[], start: string) => all.find((line) => line.startsWith(start)) ?? ''

t.test('prints the figures of each series with units and limits, and no control characters', async (t) => {
  const { code, stdout } = await box()
  t.equal(code, 0)
  t.match(stdout, /^fig: 2026-01-31 10:00:00 to 2026-01-31 11:00:00 \(1h\), a value per 30s$/m)
  t.match(stdout, /^ +LAST +MEAN +MAX +LIMIT$/m)
  t.match(stdout, /^CPU +50% +20% +75% +2 CPUs {2}▁/m)
  t.match(stdout, /^memory +1\.50 GiB +1\.50 GiB +2\.25 GiB +2\.00 GiB {2}▇/m)
  t.match(stdout, /^processes +11 +10\.5 +16\.5 {2}/m)
  t.match(stdout, /^disk written +2\.00 KiB\/s +2\.00 KiB\/s +3\.00 KiB\/s +█/m)
  t.match(stdout, /^eth0 received +3\.00 MiB\/s/m)
  t.match(stdout, /^\/home\/用户�\[2J,"x" used +1\.00 GiB/m)
  t.notOk(stdout.includes('\u001b'))
})

t.test('a gap is blank in the sparkline and is listed; unmeasured series are named once', async (t) => {
  const cpu = findLine(lines(300), 'CPU')
  t.equal(cpu.slice(-120), `${'▁'.repeat(60)}${' '.repeat(20)}${'▅'.repeat(40)}`, 'a column per bucket')
  const { stdout } = await box()
  t.match(stdout, /^No samples from 2026-01-31 10:30:00 to 2026-01-31 10:40:00 \(10m\)\.$/m)
  t.match(
    stdout,
    /^Not measured for this box: load 1m, load 5m, load 15m, listening ports, disk read, .*, eth0 sent\.$/m,
  )
  t.notMatch(stdout, /^load/m)
})

t.test('a long mount point is shortened, so that the figures fit on the terminal', async (t) => {
  const mount = '/srv/boxwood/boxes/687f6596-bef1-43a7-938d-86cc09b175be/home'
  const metrics = { ...HOUR, fs: HOUR.fs.map((group) => ({ ...group, mount })) }
  const text = formatMetrics('fig', metrics, { width: 100, isUnicode: true })
  t.match(text, /^ +LAST +MEAN +MAX +LIMIT$/m)
  t.match(text, /^…-938d-86cc09b175be\/home used +1\.00 GiB/m)
})

t.test('the sparklines end at the width of the terminal, above the time axis', async (t) => {
  for (const width of [60, 80, 120]) {
    const all = lines(width)
    const cpu = findLine(all, 'CPU')
    t.equal(cpu.length, width)
    t.match(cpu, /▁ +▅/, 'the gap is visible')
    const axis = all.findIndex((line) => line.trimStart().startsWith('┬'))
    t.equal(all[axis]?.length, width)
    t.equal(all[axis]?.indexOf('┬'), cpu.indexOf('▁'))
    t.equal(all[axis + 1]?.indexOf('10:00'), cpu.indexOf('▁'))
  }
  t.notMatch(lines(60).join('\n'), /LIMIT/)
  const narrow = lines(44)
  t.match(findLine(narrow, 'CPU'), /^CPU +▁+ +▅+$/, 'without figures')
  t.match(findLine(lines(120), ' '.repeat(50)), /┬/)
})

t.test('without UTF-8 in the locale, the sparklines are ASCII', async (t) => {
  t.match(findLine(lines(100, false), 'CPU'), /2 CPUs {2}_+ +~+$/)
  t.match(
    lines(100, false)
      .join('\n')
      .replace(/^\/home.*$/gm, '')
      .replace(/\/home\S*/g, ''),
    /^[\x20-\x7e\n]*$/,
  )
  t.equal(isUnicodeSupported({ LC_ALL: 'C', LANG: 'C.UTF-8' }), false)
  t.equal(isUnicodeSupported({ LC_ALL: '', LANG: 'en_US.utf8' }), true)
  t.equal(isUnicodeSupported({ TERM: 'xterm' }), true)
  t.equal(isUnicodeSupported({ TERM: 'linux' }), false)
  respondWith(HOUR)
  const { stdout } = await runBox(coordinator, ['metrics', 'fig'], { env: { LC_ALL: 'C' } })
  t.match(stdout, /^CPU .*_+ +~+$/m)
})

t.test('several buckets share a column: their mean, or a gap when all have no value', async (t) => {
  t.same(averageColumns([1, 3, null, 5, null, null], 3), [2, 5, null])
  t.same(averageColumns([1, 2, 3, null, 5], 2), [1.5, 4])
  t.equal(formatSparkline([0, 50, null, 100, 200], { max: 100, isUnicode: true }), '▁▅ ██')
  t.equal(formatSparkline([0, 0], { max: 0, isUnicode: true }), '▁▁')
})

t.test('--json prints the response unchanged', async (t) => {
  t.same(JSON.parse((await box('--json')).stdout), HOUR)
})

t.test('--csv prints a row per bucket with the mean and the maximum', async (t) => {
  const { code, stdout } = await box('--csv')
  t.equal(code, 0)
  const [header = '', ...rows] = stdout.split('\r\n')
  t.match(header, /^time,cpu_pct,cpu_pct_max,cpu_count,cpu_count_max,/)
  t.match(header, /,"fs\[\/home\/用户�\[2J,""x""\]\.used_bytes",/)
  t.match(header, /,iface\[eth0\]\.rx_bytes_per_sec,iface\[eth0\]\.rx_bytes_per_sec_max,/)
  t.equal(rows.pop(), '', 'a newline at the end')
  t.equal(rows.length, 120)
  t.match(rows[0], /^2026-01-31T09:00:00\.000Z,0,0,2,3,1610612736,/)
  t.match(rows[60], /^2026-01-31T09:30:00\.000Z,,,,,,/)
  t.match(await runMetrics('--csv', '--json'), { code: 2, stderr: /cannot be used with/ })
})

t.test('time spans', async (t) => {
  await box()
  t.same(getLastQuery(), {}, 'the default of the API')
  const start = Date.now()
  await box('--last', '24h')
  const { from = '', ...rest } = getLastQuery()
  t.same(rest, {})
  const end = Date.now()
  t.ok(Date.parse(from) >= start - 86_400_000 && Date.parse(from) <= end - 86_400_000)
  await box('--from', '2026-01-31T09:30', '--to', '2026-01-31T10:30:00+01:00')
  t.same(getLastQuery(), { from: '2026-01-31T08:30:00.000Z', to: '2026-01-31T09:30:00.000Z' })
  const fails = async (stderr: RegExp, ...args: string[]) =>
    t.match(await runMetrics(...args), { code: 2, stderr })
  await fails(/--from must be before --to\./, '--from', '1h', '--to', '2h')
  await fails(/--last must be a duration .* at most 30d/, '--last', '31d')
  await fails(/--last must be a duration/, '--last', '0m')
  await fails(/--from must be a duration/, '--from', 'noon')
  await fails(/cannot be used with/, '--last', '1h', '--from', '2h')
})

t.test('a time span without samples', async (t) => {
  respondWith(createMetrics({ from: '2026-01-31T09:00:00Z', res: 300, count: 12 }, { box: {} }))
  t.match(await runMetrics(), {
    code: 0,
    stdout: /\(1h\), a value per 5m\n\nNo samples\. A box takes a sample every 30 seconds while/,
  })
  respondWith(createMetrics({ from: '2026-01-31T09:00:00Z', res: 300, count: 0 }, { box: {} }))
  t.match(await runMetrics(), {
    code: 0,
    stdout: 'The time span is not within the last 30 days, for which samples are kept.\n',
  })
})

t.test('one bucket, and a span of days with the date on the axis', async (t) => {
  const box = { cpu_pct: () => 3 }
  const single = createMetrics({ from: '2026-01-31T09:00:00Z', res: 30, count: 1 }, { box })
  t.match(formatMetrics('fig', single, { width: 80, isUnicode: true }), /^CPU +3\.0% +3\.0% +4\.5% +▁$/m)
  const month = createMetrics({ from: '2026-01-01T00:00:00Z', res: 3600, count: 720 }, { box })
  t.match(formatMetrics('fig', month, { width: 120, isUnicode: true }), /^ +1 Jan +/m)
})

t.test('on a terminal, the width and its colours are used', async (t) => {
  respondWith(HOUR)
  const pty = runBoxInPty(t, coordinator, 'box metrics fig', { cols: 60, env: ENV })
  await pty.waitFor('\u001b[36m▁▁')
  await pty.waitFor('▅▅\u001b[39m\r\n')
  t.match(await pty.waitForExit(), { exitCode: 0 })
})

t.test('a missing box', async (t) => {
  t.match(await runBox(coordinator, ['metrics', 'pear']), { code: 5, stderr: /No such box: 'pear'/ })
})

/** The value of a series in a bucket. null: no sample. Series without a function are null everywhere. */
type Group = Record<string, (index: number) => number | null>

/** @param from ISO 8601, a multiple of `res` */
function createMetrics(
  { from, res, count }: { from: string; res: 30 | 300 | 3600; count: number },
  { box, fs = {}, ifaces = {} }: { box: Group; fs?: Record<string, Group>; ifaces?: Record<string, Group> },
): Metrics {
  const start = Date.parse(from) / 1000
  const toSeries = (names: object, group: Group) =>
    Object.fromEntries(
      Object.keys(names).map((name) => {
        const avg = Array.from({ length: count }, (_, index) => group[name]?.(index) ?? null)
        return [name, { avg, max: avg.map((value) => value && value * 1.5) }]
      }),
    )
  return metricsSchema.parse({
    v: 1,
    res,
    from: new Date(start * 1000).toISOString(),
    to: new Date((start + count * res) * 1000).toISOString(),
    buckets: Array.from({ length: count }, (_, index) => start + index * res),
    series: toSeries(BOX_SERIES, box),
    fs: Object.entries(fs).map(([mount, group]) => ({ mount, ...toSeries(FILE_SYSTEM_SERIES, group) })),
    ifaces: Object.entries(ifaces).map(([name, group]) => ({ name, ...toSeries(INTERFACE_SERIES, group) })),
  })
}
