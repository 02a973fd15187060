// box logs: what was kept so far, what is followed, and how it ends.
import type { ChildProcess } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { fakeProcesses } from './fake-processes.ts'
import { createRandom } from './random.ts'
import { type BoxOptions, runBox, runBoxForBytes } from './run-box.ts'

const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const processes = fakeProcesses(fake)
const box = (args: string[], options?: BoxOptions) => runBox(fake.url, args, options)
const bytes = createRandom(7).bytes(200_000)

t.test('without -f: what there is of a process that goes on, byte for byte', async (t) => {
  const { id } = processes.add({ stdout: bytes, stderr: Buffer.from('oops\n'), end: null })
  const seen = await runBoxForBytes(fake.url, ['logs', 'fig', id])
  t.match(seen, { code: 0 })
  t.ok(seen.stdout.equals(bytes))
  t.equal(seen.stderr.toString(), 'oops\n')
})

t.test('without -f the exit code is not the command’s', async (t) => {
  const end = { status: 'exited', exitCode: 7, signal: null } as const
  const { id } = processes.add({ stdout: Buffer.from('a\n'), end })
  t.same(await box(['logs', 'fig', id]), { code: 0, stdout: 'a\n', stderr: '' })
  t.same(await box(['logs', 'fig', processes.add({ end }).id]), { code: 0, stdout: '', stderr: '' })
})

t.test('--tail is in bytes, of each stream', async (t) => {
  const process = { stdout: Buffer.from('1234567'), stderr: Buffer.from('ab') }
  const { id } = processes.add(process)
  t.same(await box(['logs', '--tail', '3', 'fig', id]), { code: 0, stdout: '567', stderr: 'ab' })
  t.same(await box(['logs', '-f', '--tail', '0', 'fig', id]), { code: 0, stdout: '', stderr: '' })
})

t.test('-f ends as the command ended', async (t) => {
  const ended = (status: 'exited' | 'killed' | 'lost', exitCode: number | null, signal: string | null) =>
    box(['logs', '-f', 'fig', processes.add({ end: { status, exitCode, signal } }).id])
  t.same(await ended('exited', 7, null), { code: 7, stdout: '', stderr: '' })
  t.match(await ended('killed', null, 'TERM'), { code: 143 })
  t.match(await ended('lost', null, null), { code: 125, stderr: /is lost: how it ended is not known/ })
})

t.test('a head that is no longer kept is said once, with its size', async (t) => {
  const { id } = processes.add({
    stdout: bytes,
    kept: { stdout: 150_000, stderr: 0 },
    fault: (connection) => (connection === 1 ? { kind: 'cut', afterBytes: 30_000, backBytes: 0 } : null),
  })
  for (const args of [
    ['logs', 'fig', id],
    ['logs', '-f', 'fig', id],
  ]) {
    const seen = await runBoxForBytes(fake.url, args)
    t.ok(seen.stdout.equals(bytes.subarray(150_000)))
    t.equal(
      seen.stderr.toString(),
      'box: 150000 bytes of stdout before this are missing: fig no longer keeps them.\n',
    )
  }
})

t.test('--json: an object a line', async (t) => {
  const { id } = processes.add({ stdout: bytes.subarray(0, 5) })
  const { code, stdout } = await box(['logs', '-f', '--json', 'fig', id])
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const output = events.filter(({ event }) => event === 'stdout')
  t.equal(code, 0)
  t.same(Buffer.concat(output.map(({ data }) => Buffer.from(data, 'base64'))), bytes.subarray(0, 5))
  t.match(output.at(-1), { nextOffset: 5 })
  t.match(events.at(-1), { event: 'exit', status: 'exited', exitCode: 0 })
})

t.test('what is not there', async (t) => {
  t.match(await box(['logs', 'fig', 'p_1']), { code: 5, stderr: /no process p_1 on fig.*box ps fig/ })
  t.match(await box(['logs', 'plum', 'p_1']), { code: 5, stderr: /no box plum.*box ls/ })
  t.match(await box(['logs', '-f', 'plum', 'p_1']), { code: 125, stderr: /no box plum/ })
  const { id } = processes.add({ fault: () => ({ kind: 'refusal', code: 'box_not_running' }) })
  t.match(await box(['logs', '-f', 'fig', id]), { code: 125, stderr: /box wake fig/ }, 'told at once')
  fake.answerNext('GET /v1/box/fig/exec/p_2/stream', (response) => response.end('<html>'))
  t.match(await box(['logs', 'fig', 'p_2']), { code: 1, stderr: /not as a coordinator/ })
})

t.test('a stream that does not add up is not passed on', async (t) => {
  fake.answerNext('GET /v1/box/fig/exec/p_2/stream', (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('event: stdout\nid: 9:0\ndata: {"data":"YWI=","offset":0,"nextOffset":9}\n\n')
  })
  t.match(await box(['logs', '-f', 'fig', 'p_2']), { code: 125, stdout: '', stderr: /does not add up/ })
})

t.test('Ctrl-C leaves the process, and says how to come back', async (t) => {
  const { id } = processes.add({ stdout: Buffer.from('ready\n'), end: null })
  const seen = await box(['logs', '-f', 'fig', id], { meanwhile: (child) => interruptAtOutput(child) })
  t.same(seen, {
    code: 130,
    stdout: 'ready\n',
    stderr: `box: the process goes on. To come back: box logs -f fig ${id}\n`,
  })
})

t.test('a reader that leaves is no crash', async (t) => {
  const { id } = processes.add({ stdout: Buffer.alloc(900_000), end: null })
  const seen = await box(['logs', '-f', 'fig', id], { meanwhile: (child) => child.stdout?.destroy() })
  t.same(seen, { code: 141, stdout: '', stderr: '' })
})

t.test('a reader that does not read makes the coordinator wait, and Ctrl-C still ends it', async (t) => {
  const process = processes.add({ stdout: Buffer.alloc(64 * 1024 * 1024), end: null })
  const seen = await box(['logs', '-f', 'fig', process.id], {
    deaf: true,
    async meanwhile(child) {
      let before = -1
      // Until a whole second brings no more.
      while (process.sent === 0 || process.sent !== before) {
        before = process.sent
        await delay(1000)
      }
      child.kill('SIGINT')
    },
  })
  t.equal(seen.code, 130)
  t.ok(process.sent < 16 * 1024 * 1024, `${process.sent} bytes of 85 million went out`)
})

function interruptAtOutput(child: ChildProcess): void {
  child.stdout?.once('data', () => child.kill('SIGINT'))
}
