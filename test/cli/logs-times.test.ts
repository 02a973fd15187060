// box logs --since and --timestamps.
import t from 'tap'
import { parseTime } from '../../cli/arguments/parse-time.ts'
import { createTimePrefixer } from '../../cli/logs/output-printer.ts'
import { waitUntil } from '../support/wait-until.ts'
import { startCliCoordinator } from './coordinator.ts'
import { createProcessStarter, streamOf } from './detached-processes.ts'
import { createRandom } from './random.ts'
import { runBox } from './run-box.ts'
import { type StreamFault, setStreamFaults } from './stream-faults.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const { edge } = coordinator
const { start, run, waitForOutput } = createProcessStarter(coordinator)
const box = (...args: string[]) => runBox(coordinator, args)

/** The times of output are exact to this. */
const TIME_EXACTNESS_MS = 100

/** Resolves with a time that is later than that of all output so far. */
async function waitForNextTime(): Promise<string> {
  const until = Date.now() + TIME_EXACTNESS_MS
  await waitUntil('the next time of output', () => Date.now() > until)
  return new Date().toISOString()
}

const createFile = (name: string) => edge('fig', 'POST', '/exec', { command: `touch ${name}` })
const waitForFile = (name: string) => `until test -e ${name}; do sleep 0.01; done`

t.test('--since starts with the output of that time, in both streams', async (t) => {
  const id = await start(`echo old; echo OLD >&2; ${waitForFile('since')}; echo new; echo NEW >&2`)
  await waitForOutput(id, 'old\n', 'OLD\n')
  const recent = await waitForNextTime()
  await createFile('since')
  await waitForOutput(id, 'new\n', 'NEW\n')
  await waitForNextTime()
  const expected = { code: 0, stdout: 'new\n', stderr: 'NEW\n' }
  t.same(await box('logs', '--since', recent, 'fig', id), expected)
  t.same(await box('logs', '-f', '--since', recent, 'fig', id), expected)
  t.match(await box('logs', '--since', '1h', 'fig', id), { stdout: 'old\nnew\n', stderr: 'OLD\nNEW\n' })
  t.same(await box('logs', '-f', '--since', '1ms', 'fig', id), { code: 0, stdout: '', stderr: '' })
  t.match(await box('logs', '--since', '1h', '-n', '1', 'fig', id), expected, 'the later start wins')
  t.match(await box('logs', '--since', recent, '-n', '5', 'fig', id), expected)
})

t.test('--timestamps prints the time of each line, over connections that fail', async (t) => {
  const print = 'head -c 20000 /dev/zero | tr "\\0" x'
  const line = 'x'.repeat(20_000)
  const id = await start(
    `echo 1; printf '2 '; ${print}; ${waitForFile('times')}; echo; printf '3 '; ${print}; echo`,
  )
  await waitForOutput(id, 'xx')
  const between = await waitForNextTime()
  await createFile('times')
  await waitForOutput(id, 'x\n')
  setStreamFaults(
    coordinator,
    streamOf(id),
    Array.from({ length: 20 }, (_, connection): StreamFault | null =>
      connection % 3 === 1 ? { kind: 'disconnect', afterBytes: 20_000 } : null,
    ),
  )
  const { code, stdout, stderr } = await box('logs', '-f', '-t', 'fig', id)
  t.same({ code, stderr }, { code: 0, stderr: '' })
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((text) => text.split(/ (.*)/))
  t.same(
    lines.map(([, text]) => text),
    ['1', `2 ${line}`, `3 ${line}`],
  )
  const [first = '', second = '', third = ''] = lines.map(([time]) => time)
  for (const time of [first, second, third]) t.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  t.ok(first <= second && second < between, 'the time of the first byte of a line')
  t.ok(third >= between)
  const json = await box('logs', '-t', '--json', 'fig', id)
  t.match(JSON.parse(json.stdout.split('\n')[0] ?? ''), { event: 'stdout', at: first })
})

t.test('without times, --since prints everything and --timestamps omits the time, with a note', async (t) => {
  const id = await run("printf '1\\n2\\n'")
  // As for a process that was started by an earlier version.
  const change = (event: string) =>
    event.replace('"hasTimes":true', '"hasTimes":false').replace(/"at":"[^"]*"/, '"at":null')
  setStreamFaults(coordinator, streamOf(id), Array(5).fill({ kind: 'complete', change }))
  t.same(await box('logs', '--since', '10m', 'fig', id), {
    code: 0,
    stdout: '1\n2\n',
    stderr: 'box: the times of this output are unknown: --since has no effect.\n',
  })
  setStreamFaults(coordinator, streamOf(id), Array(5).fill({ kind: 'complete', change }))
  t.same(await box('logs', '-t', 'fig', id), {
    code: 0,
    stdout: '- 1\n- 2\n',
    stderr: 'box: the times of this output are unknown: --timestamps prints "-".\n',
  })
})

t.test('a time that could control the terminal is rejected', async (t) => {
  const id = await run('echo 1')
  const change = (event: string) => event.replace(/"at":"[^"]*"/, '"at":"\\u001b[2J"')
  setStreamFaults(coordinator, streamOf(id), [null, { kind: 'complete', change }])
  t.match(await box('logs', '-t', 'fig', id), { code: 1, stdout: '', stderr: /stdout without a valid at/ })
})

t.test('a line gets one time, however its bytes arrive', async (t) => {
  const random = createRandom(3)
  const text = 'a\n\nlong line\nlast without newline'
  for (let round = 0; round < 20; round++) {
    const prefix = createTimePrefixer()
    let result = ''
    for (let offset = 0; offset < text.length; ) {
      const bytes = Buffer.from(text.slice(offset, offset + 1 + random.below(6)))
      result += prefix({ stream: 'stdout', bytes, offset, at: 'T' })
      offset += bytes.length
    }
    t.equal(result, 'T a\nT \nT long line\nT last without newline')
  }
})

t.test('parses durations and times', async (t) => {
  const now = Date.UTC(2026, 0, 31, 12)
  const parse = (text: string) => parseTime('--since', text, now)
  t.equal(parse('90s'), now - 90_000)
  t.equal(parse('1h30m'), now - 5_400_000)
  t.equal(parse('1.5d'), now - 129_600_000)
  t.equal(parse('250ms'), now - 250)
  t.equal(parse('99999d'), 0, 'before 1970')
  t.equal(parse('2026-01-31T10:00:00Z'), now - 7_200_000)
  t.equal(parse('2026-01-31T10:00+01:00'), now - 10_800_000)
  t.equal(parse('2026-01-31 10:00:00.5'), new Date(2026, 0, 31, 10, 0, 0, 500).getTime(), 'local time')
  t.equal(parse('2026-01-31'), new Date(2026, 0, 31).getTime(), 'a local date')
  for (const text of ['', '10', '10 m', 'yesterday', '10x', '2026-13-01', '2026-01-31T', '-5m', '1', 'm'])
    t.throws(() => parse(text), { exitCode: 2, message: /^--since must be a duration such as/ }, text)
  t.match(await box('logs', '--since', 'never', 'fig'), { code: 2, stderr: /^box: --since must be/ })
})
