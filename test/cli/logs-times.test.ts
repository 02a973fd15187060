// box logs --since and --timestamps.
import t from 'tap'
import { parseTime } from '../../cli/arguments/parse-time.ts'
import { createTimePrefixer } from '../../cli/logs/output-printer.ts'

import { startFakeCoordinator } from './fake-coordinator.ts'
import { addFakeProcesses } from './fake-processes.ts'
import { createRandom } from './random.ts'
import { runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const { add } = addFakeProcesses(fake)
const box = (...args: string[]) => runBox(fake.url, args)
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()

t.test('--since starts with the output of that time, in both streams', async (t) => {
  const [old, recent] = [minutesAgo(30), minutesAgo(5)]
  const { id } = add({
    stdout: Buffer.from('old\nnew\n'),
    stderr: Buffer.from('OLD\nNEW\n'),
    times: [
      { at: old, offset: 0 },
      { at: recent, offset: 4 },
    ],
  })
  const expected = { code: 0, stdout: 'new\n', stderr: 'NEW\n' }
  t.same(await box('logs', '--since', '10m', 'fig', id), expected)
  t.same(await box('logs', '-f', '--since', recent, 'fig', id), expected)
  t.match(await box('logs', '--since', '1h', 'fig', id), { stdout: 'old\nnew\n', stderr: 'OLD\nNEW\n' })
  t.same(await box('logs', '-f', '--since', '1m', 'fig', id), { code: 0, stdout: '', stderr: '' })
  t.match(await box('logs', '--since', '1h', '-n', '1', 'fig', id), expected, 'the later start wins')
  t.match(await box('logs', '--since', '10m', '-n', '5', 'fig', id), expected)
})

t.test('--timestamps prints the time of each line, over connections that fail', async (t) => {
  const line = 'x'.repeat(20_000)
  const process = add({
    stdout: Buffer.from(`1\n2 ${line}\n3 ${line}\n`),
    times: [
      { at: '2026-01-01T00:00:01.000Z', offset: 0 },
      { at: '2026-01-01T00:00:02.500Z', offset: 20_005 },
      { at: '2026-01-01T00:00:03.000Z', offset: 20_010 },
    ],
    getFault: (connection) => (connection % 3 === 1 ? { kind: 'disconnect', afterBytes: 20_000 } : null),
  })
  t.same(await box('logs', '-f', '-t', 'fig', process.id), {
    code: 0,
    stdout: [
      '2026-01-01T00:00:01.000Z 1',
      `2026-01-01T00:00:01.000Z 2 ${line}`,
      `2026-01-01T00:00:02.500Z 3 ${line}\n`,
    ].join('\n'),
    stderr: '',
  })
  const { stdout } = await box('logs', '-t', '--json', 'fig', process.id)
  t.match(JSON.parse(stdout.split('\n')[0] ?? ''), { event: 'stdout', at: '2026-01-01T00:00:01.000Z' })
})

t.test('without times, --since prints everything and --timestamps omits the time, with a note', async (t) => {
  const { id } = add({ stdout: Buffer.from('1\n2\n') })
  t.same(await box('logs', '--since', '10m', 'fig', id), {
    code: 0,
    stdout: '1\n2\n',
    stderr: 'box: the times of this output are unknown: --since has no effect.\n',
  })
  t.same(await box('logs', '-t', 'fig', id), {
    code: 0,
    stdout: '- 1\n- 2\n',
    stderr: 'box: the times of this output are unknown: --timestamps prints "-".\n',
  })
})

t.test('a time that could control the terminal is rejected', async (t) => {
  const { id } = add({ stdout: Buffer.from('1\n'), times: [{ at: '\u001b[2J', offset: 0 }] })
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
