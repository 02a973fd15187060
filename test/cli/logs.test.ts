// box logs: stored output, following, exit codes, interruptions and slow readers.
import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { waitUntil } from '../support/wait-until.ts'
import { startCliCoordinator } from './coordinator.ts'
import { createProcessStarter, streamOf } from './detached-processes.ts'
import { createRandom } from './random.ts'
import { type BoxOptions, runBox, runBoxForBytes } from './run-box.ts'
import { discardStdout, type StreamFault, setStreamFaults } from './stream-faults.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const { start, run, readStatus, waitForOutput, writeFile } = createProcessStarter(coordinator)
const box = (args: string[], options?: BoxOptions) => runBox(coordinator, args, options)
const setFaults = (id: string, faults: StreamFault[]) => setStreamFaults(coordinator, streamOf(id), faults)
const bytes = createRandom(7).bytes(200_000)

t.test('without -f, prints the output so far of a running process, byte for byte', async (t) => {
  const id = await start(
    `cat ${writeFile(Buffer.concat([bytes, Buffer.from('end')]))}; echo oops >&2; sleep 1000`,
  )
  await waitForOutput(id, 'end', 'oops\n')
  const result = await runBoxForBytes(coordinator, ['logs', 'fig', id])
  t.match(result, { code: 0 })
  t.ok(result.stdout.equals(Buffer.concat([bytes, Buffer.from('end')])))
  t.equal(result.stderr.toString(), 'oops\n')
})

t.test('without -f, exits with 0 whatever the exit code of the command', async (t) => {
  t.same(await box(['logs', 'fig', await run('echo a; exit 7')]), { code: 0, stdout: 'a\n', stderr: '' })
  t.same(await box(['logs', 'fig', await run('exit 7')]), { code: 0, stdout: '', stderr: '' })
})

t.test('--tail prints the last lines of each stream', async (t) => {
  const id = await run("printf '1\\n22\\n333\\n'; printf 'a\\nb' >&2")
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
  const id = await run(`cat ${writeFile(Buffer.concat(lines))}`)
  const faults = Array.from(
    { length: 60 },
    (_, index): StreamFault =>
      index % 2 === 1 ? { kind: 'disconnect', afterBytes: 150_000 } : { kind: 'complete' },
  )
  const { countConnections } = setFaults(id, faults)
  const result = await runBoxForBytes(coordinator, ['logs', '-n', '120', 'fig', id])
  t.ok(result.stdout.equals(Buffer.concat(lines.slice(-120))))
  t.equal(result.stderr.toString(), '')
  t.ok(countConnections() > 4, `${countConnections()} connections`)
  const { getBytesSent } = setFaults(id, faults)
  await runBoxForBytes(coordinator, ['logs', '-n', '3', 'fig', id])
  t.ok(getBytesSent() > 0 && getBytesSent() < 400_000, `${getBytesSent()} bytes were sent`)
})

t.test('--tail of a log whose head was discarded prints the rest of the log', async (t) => {
  const id = await run("printf '1\\n2\\n3\\n'")
  setFaults(id, Array(10).fill({ kind: 'complete', seek: discardStdout(3) }))
  const result = await box(['logs', '-n', '9', 'fig', id])
  t.same(result, { code: 0, stdout: '\n3\n', stderr: '' })
})

t.test('--bytes prints the last bytes of each stream', async (t) => {
  const id = await run('printf 1234567; printf ab >&2')
  t.same(await box(['logs', '--bytes', '3', 'fig', id]), { code: 0, stdout: '567', stderr: 'ab' })
  t.same(await box(['logs', '-f', '--bytes', '0', 'fig', id]), { code: 0, stdout: '', stderr: '' })
  t.match(await box(['logs', '--bytes', '1', '-n', '1', 'fig', id]), {
    code: 2,
    stderr: /cannot be used with/,
  })
})

t.test('a limit of the coordinator is reported while logs waits', async (t) => {
  const id = await run('echo ready')
  setFaults(
    id,
    Array(3).fill({ kind: 'error_response', code: 'rate_limited', headers: { 'retry-after': '0' } }),
  )
  t.same(await box(['logs', '-f', 'fig', id]), {
    code: 0,
    stdout: 'ready\n',
    stderr: 'box: waiting. Try again later (non-ASCII: ñ). (rate_limited) Retrying; press Ctrl-C to stop.\n',
  })
})

t.test('-f exits with the code of the command', async (t) => {
  t.same(await box(['logs', '-f', 'fig', await run('exit 7')]), { code: 7, stdout: '', stderr: '' })
  t.match(await box(['logs', '-f', 'fig', await run('kill -TERM $$')]), { code: 143 })
})

t.test('-f of a process whose runner was killed reports that the exit status is unknown', async (t) => {
  const id = await start('echo ready; sleep 1000')
  await waitForOutput(id, 'ready\n')
  const { pid } = await readStatus(id)
  const [, runner] = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  process.kill(Number(runner), 'SIGKILL')
  t.match(await box(['logs', '-f', 'fig', id]), {
    code: 125,
    stdout: 'ready\n',
    stderr: /^box: The exit status of the process is unknown/,
  })
})

t.test('reports discarded output once, with its size', async (t) => {
  const id = await run(`cat ${writeFile(bytes)}`)
  const seek = discardStdout(150_000)
  for (const args of [
    ['logs', 'fig', id],
    ['logs', '-f', 'fig', id],
  ]) {
    setFaults(id, [
      { kind: 'complete', seek },
      { kind: 'disconnect', afterBytes: 30_000, seek },
      { kind: 'complete', seek },
    ])
    const result = await runBoxForBytes(coordinator, args)
    t.ok(result.stdout.equals(bytes.subarray(150_000)))
    t.equal(
      result.stderr.toString(),
      'box: 150000 bytes of stdout before this point are missing: fig has discarded them.\n',
    )
  }
})

t.test('--json prints an object per line', async (t) => {
  const id = await run(`head -c 5 ${writeFile(bytes)}`)
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
  coordinator.failNext(streamOf(unknown), (response) => response.end('<html>'))
  t.match(await box(['logs', 'fig', unknown]), {
    code: 1,
    stderr: /is not from a Boxwood coordinator/,
  })
})

t.test('rejects an event whose length does not match its offsets', async (t) => {
  const id = await run('echo a')
  const change = (event: string) => event.replace('"nextOffset":2', '"nextOffset":9')
  setFaults(id, [{ kind: 'complete', change }])
  t.match(await box(['logs', '-f', 'fig', id]), {
    code: 125,
    stdout: '',
    stderr: /stdout data whose length does not match its offsets/,
  })
})

t.test('Ctrl-C leaves the process running and prints how to reattach', async (t) => {
  const id = await start('echo ready; sleep 1000')
  const result = await box(['logs', '-f', 'fig', id], { onSpawn: interruptAtFirstOutput })
  t.same(result, {
    code: 130,
    stdout: 'ready\n',
    stderr: `box: detached; the process is still running. Reattach with: box logs -f fig ${id}\n`,
  })
  t.match(await readStatus(id), { running: true })
})

t.test('exits with 141 and no message when the reader of stdout closes the pipe', async (t) => {
  const id = await start('head -c 900000 /dev/zero; sleep 1000')
  const result = await box(['logs', '-f', 'fig', id], { onSpawn: (child) => child.stdout?.destroy() })
  t.same(result, { code: 141, stdout: '', stderr: '' })
})

t.test('an idle reader of stdout slows the coordinator down, and Ctrl-C still works', async (t) => {
  const id = await start('head -c 50000000 /dev/zero; sleep 1000')
  const { getBytesSent } = setFaults(id, [{ kind: 'complete' }])
  let interrupted: Promise<void> | undefined
  const { code } = await box(['logs', '-f', 'fig', id], {
    ignoreStdout: true,
    onSpawn(child) {
      let previous = 0
      let unchanged = 0
      interrupted = waitUntil('back-pressure stops the output', () => {
        const sent = getBytesSent()
        unchanged = sent > 0 && sent === previous ? unchanged + 1 : 0
        previous = sent
        return unchanged > 20
      }).then(() => void child.kill('SIGINT'))
    },
  })
  await interrupted
  t.equal(code, 130)
  t.ok(getBytesSent() < 16 * 1024 * 1024, `${getBytesSent()} of 66 million bytes were sent`)
})

function interruptAtFirstOutput(child: ChildProcess): void {
  child.stdout?.once('data', () => child.kill('SIGINT'))
}
