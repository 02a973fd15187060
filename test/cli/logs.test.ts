// box logs: stored output, following, exit codes, interruptions and slow readers.
import type { ChildProcess } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { addFakeProcesses } from './fake-processes.ts'
import { createRandom } from './random.ts'
import { type BoxOptions, runBox, runBoxForBytes } from './run-box.ts'

const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const processes = addFakeProcesses(fake)
const box = (args: string[], options?: BoxOptions) => runBox(fake.url, args, options)
const bytes = createRandom(7).bytes(200_000)

t.test('without -f, prints the output so far of a running process, byte for byte', async (t) => {
  const { id } = processes.add({ stdout: bytes, stderr: Buffer.from('oops\n'), exit: null })
  const result = await runBoxForBytes(fake.url, ['logs', 'fig', id])
  t.match(result, { code: 0 })
  t.ok(result.stdout.equals(bytes))
  t.equal(result.stderr.toString(), 'oops\n')
})

t.test('without -f, exits with 0 whatever the exit code of the command', async (t) => {
  const exit = { status: 'exited', exitCode: 7, signal: null } as const
  const { id } = processes.add({ stdout: Buffer.from('a\n'), exit })
  t.same(await box(['logs', 'fig', id]), { code: 0, stdout: 'a\n', stderr: '' })
  t.same(await box(['logs', 'fig', processes.add({ exit }).id]), { code: 0, stdout: '', stderr: '' })
})

t.test('--tail prints the last lines of each stream', async (t) => {
  const { id } = processes.add({ stdout: Buffer.from('1\n22\n333\n'), stderr: Buffer.from('a\nb') })
  const tail = async (count: string, stdout: string, stderr: string) => {
    t.same(await box(['logs', '-n', count, 'fig', id]), { code: 0, stdout, stderr })
    t.same(await box(['logs', '-f', '--tail', count, 'fig', id]), { code: 0, stdout, stderr })
  }
  await tail('0', '', '')
  await tail('1', '333\n', 'b')
  await tail('2', '22\n333\n', 'a\nb')
  await tail('10', '1\n22\n333\n', 'a\nb')
  const stderr = 'box: --tail must be an integer between 0 and 999999999.\n'
  t.same(await box(['logs', '--tail', 'all', 'fig', id]), { code: 2, stdout: '', stderr })
})

t.test('--tail reads long lines and large outputs exactly, and only as much as needed', async (t) => {
  const random = createRandom(11)
  const lines = Array.from({ length: 400 }, (_, index) =>
    Buffer.concat([
      random.bytes(index % 50 === 0 ? 150_000 : 900).map((byte) => (byte === 10 ? 11 : byte)),
      Buffer.from('\n'),
    ]),
  )
  const process = processes.add({
    stdout: Buffer.concat(lines),
    getFault: (connection) => (connection % 2 === 1 ? { kind: 'disconnect', afterBytes: 60_000 } : null),
  })
  const result = await runBoxForBytes(fake.url, ['logs', '-n', '120', 'fig', process.id])
  t.ok(result.stdout.equals(Buffer.concat(lines.slice(-120))))
  t.equal(result.stderr.toString(), '')
  process.bytesSent = 0
  await runBoxForBytes(fake.url, ['logs', '-n', '3', 'fig', process.id])
  t.ok(process.bytesSent < 400_000, `${process.bytesSent} bytes were sent`)
})

t.test('--tail of a log whose head was discarded prints the rest of the log', async (t) => {
  const { id } = processes.add({
    stdout: Buffer.from('1\n2\n3\n'),
    firstStoredByte: { stdout: 3, stderr: 0 },
  })
  const result = await box(['logs', '-n', '9', 'fig', id])
  t.same(result, { code: 0, stdout: '\n3\n', stderr: '' })
})

t.test('--bytes prints the last bytes of each stream', async (t) => {
  const { id } = processes.add({ stdout: Buffer.from('1234567'), stderr: Buffer.from('ab') })
  t.same(await box(['logs', '--bytes', '3', 'fig', id]), { code: 0, stdout: '567', stderr: 'ab' })
  t.same(await box(['logs', '-f', '--bytes', '0', 'fig', id]), { code: 0, stdout: '', stderr: '' })
  t.match(await box(['logs', '--bytes', '1', '-n', '1', 'fig', id]), {
    code: 2,
    stderr: /cannot be used with/,
  })
})

t.test('a limit of the coordinator is reported while logs waits', async (t) => {
  const { id } = processes.add({
    stdout: Buffer.from('ready\n'),
    getFault: (connection) =>
      connection < 3
        ? { kind: 'error_response', code: 'rate_limited', headers: { 'retry-after': '0' } }
        : null,
  })
  t.same(await box(['logs', '-f', 'fig', id]), {
    code: 0,
    stdout: 'ready\n',
    stderr:
      'box: waiting. Try again later (non-ASCII: \uFFFD). (rate_limited) Retrying; press Ctrl-C to stop.\n'.replace(
        '\uFFFD',
        'ñ',
      ),
  })
})

t.test('-f exits with the code of the command', async (t) => {
  const follow = (status: 'exited' | 'killed' | 'lost', exitCode: number | null, signal: string | null) =>
    box(['logs', '-f', 'fig', processes.add({ exit: { status, exitCode, signal } }).id])
  t.same(await follow('exited', 7, null), { code: 7, stdout: '', stderr: '' })
  t.match(await follow('killed', null, 'TERM'), { code: 143 })
  t.match(await follow('lost', null, null), {
    code: 125,
    stderr: /^box: The exit status of the process is unknown/,
  })
})

t.test('reports discarded output once, with its size', async (t) => {
  const { id } = processes.add({
    stdout: bytes,
    firstStoredByte: { stdout: 150_000, stderr: 0 },
    getFault: (connection) => (connection === 1 ? { kind: 'disconnect', afterBytes: 30_000 } : null),
  })
  for (const args of [
    ['logs', 'fig', id],
    ['logs', '-f', 'fig', id],
  ]) {
    const result = await runBoxForBytes(fake.url, args)
    t.ok(result.stdout.equals(bytes.subarray(150_000)))
    t.equal(
      result.stderr.toString(),
      'box: 150000 bytes of stdout before this point are missing: fig has discarded them.\n',
    )
  }
})

t.test('--json prints an object per line', async (t) => {
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

t.test('fails when the process or the box does not exist', async (t) => {
  const noSuchProcess = "box: No such process on fig: 'p_x'. Run `box ps fig` to list processes.\n"
  t.match(await box(['logs', 'fig', 'p_x']), { code: 5, stderr: noSuchProcess })
  const unknown = 'p_ffffffffffffffffffffffff'
  t.match(await box(['logs', 'fig', unknown]), { code: 5, stderr: noSuchProcess.replace('p_x', unknown) })
  t.match(await box(['logs', 'plum', 'p_1']), { code: 5, stderr: /No such box: 'plum'.*box ls/ })
  for (const option of ['-f', '-ft', '-tf', '--follow'])
    t.match(await box(['logs', option, 'plum', 'p_1']), { code: 125, stderr: /No such box: 'plum'/ })
  fake.handleNext('GET /v1/box/fig/exec/p_222222222222222222222222/stream', (response) =>
    response.end('<html>'),
  )
  t.match(await box(['logs', 'fig', 'p_222222222222222222222222']), {
    code: 1,
    stderr: /is not from a Boxwood coordinator/,
  })
})

t.test('rejects an event whose length does not match its offsets', async (t) => {
  fake.handleNext('GET /v1/box/fig/exec/p_222222222222222222222222/stream', (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('event: stdout\nid: 9:0\ndata: {"data":"YWI=","offset":0,"nextOffset":9}\n\n')
  })
  t.match(await box(['logs', '-f', 'fig', 'p_222222222222222222222222']), {
    code: 125,
    stdout: '',
    stderr: /stdout data whose length does not match its offsets/,
  })
})

t.test('Ctrl-C leaves the process running and prints how to reattach', async (t) => {
  const { id } = processes.add({ stdout: Buffer.from('ready\n'), exit: null })
  const result = await box(['logs', '-f', 'fig', id], { onSpawn: interruptAtFirstOutput })
  t.same(result, {
    code: 130,
    stdout: 'ready\n',
    stderr: `box: detached; the process is still running. Reattach with: box logs -f fig ${id}\n`,
  })
})

t.test('exits with 141 and no message when the reader of stdout closes the pipe', async (t) => {
  const { id } = processes.add({ stdout: Buffer.alloc(900_000), exit: null })
  const result = await box(['logs', '-f', 'fig', id], { onSpawn: (child) => child.stdout?.destroy() })
  t.same(result, { code: 141, stdout: '', stderr: '' })
})

t.test('an idle reader of stdout slows the coordinator down, and Ctrl-C still works', async (t) => {
  const process = processes.add({ stdout: Buffer.alloc(64 * 1024 * 1024), exit: null })
  const { code } = await box(['logs', '-f', 'fig', process.id], {
    ignoreStdout: true,
    async onSpawn(child) {
      let previous = -1
      // Until nothing is sent for a whole second.
      while (process.bytesSent === 0 || process.bytesSent !== previous) {
        previous = process.bytesSent
        await delay(1000)
      }
      child.kill('SIGINT')
    },
  })
  t.equal(code, 130)
  t.ok(process.bytesSent < 16 * 1024 * 1024, `${process.bytesSent} of 85 million bytes were sent`)
})

function interruptAtFirstOutput(child: ChildProcess): void {
  child.stdout?.once('data', () => child.kill('SIGINT'))
}
