// box run: a command in a new box, which stays, or is deleted with --rm after every outcome.
import t from 'tap'
import type { Box } from '../../shared/api/boxes.ts'
import { waitUntil } from '../support/wait-until.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startCliCoordinator } from './coordinator.ts'
import { type BoxOptions, runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, [], { machines: 'local' })
const runRaw = (args: string[], options: BoxOptions = {}) => runBox(coordinator, ['run', ...args], options)
const run = (args: string[], options: BoxOptions = {}) => runRaw(['--name', 'plum', ...args], options)
const getState = async (name: string): Promise<string | undefined> => {
  const { json } = await coordinator.api('GET', '/boxes?live=1')
  return json.boxes.find(({ hostname }: Box) => hostname === name)?.observedState
}
const waitForDeletion = (name: string) =>
  waitUntil(`${name} is deleted`, async () => (await getState(name)) === undefined)
const STAYS = /^box: the box plum stays\. Delete it with `\S*box rm plum`\.\n$/

t.test('creates a box, runs the command with stdin, and exits with its code', async (t) => {
  const result = await run(
    ['--tier', 'pro', '-e', 'A=1', '-w', '/', '--', 'pwd; echo $A; cat; echo oops >&2; exit 3'],
    {
      stdin: 'typed\n',
    },
  )
  t.match(result, { code: 3, stdout: '/\n1\ntyped\n' })
  t.match(result.stderr, /^oops\nbox: the box plum stays/)
  t.match(await coordinator.findBox('plum'), { tier: 'pro', envVars: [{ name: 'A', value: '1' }] })
  t.equal(await getState('plum'), 'running')
  t.match(await run(['--name', 'plum', '--', 'true']), { code: 125, stderr: /\(name_taken\)/ })
  t.equal(await getState('plum'), 'running', 'an existing box is not deleted')
  await runBox(coordinator, ['rm', 'plum'])
})

t.test('--rm deletes the box after success and failure, and prints nothing', async (t) => {
  t.same(await run(['--rm', '--', 'printf', '%s', '-n']), { code: 0, stdout: '-n', stderr: '' })
  await waitForDeletion('plum')
  t.same(await run(['--rm', '--name', 'kiwi', '--', 'exit 7']), { code: 7, stdout: '', stderr: '' })
  await waitForDeletion('kiwi')
  const json = await run(['--rm', '--json', '--', 'echo out'])
  t.match(JSON.parse(json.stdout), { type: 'exec.result', stdout: 'out\n' })
  t.equal(json.stderr, '')
  await waitForDeletion('plum')
})

t.test('--rm deletes the box when it does not start, and when the command cannot be started', async (t) => {
  coordinator.changeDetailNext({ observedState: 'provision_failed' })
  t.match(await run(['--rm', '--', 'true']), {
    code: 125,
    stderr: /^box: Could not create plum: [^.]*\.\n$/,
  })
  await waitForDeletion('plum')
  coordinator.respondNext('POST /v1/box/plum/exec', 502, {
    ok: false,
    error: { code: 'exec_failed', message: 'It failed.' },
  })
  t.match(await run(['--rm', '--', 'true']), { code: 125, stderr: 'box: It failed. (exec_failed)\n' })
  await waitForDeletion('plum')
})

t.test('--rm deletes the box after Ctrl-C, before and while the command runs', async (t) => {
  for (const linePrefix of ['POST /api/v1/boxes', 'GET /api/v1/boxes/', 'POST /v1/box/plum/exec']) {
    const { code } = await run(['--rm', '--', 'echo ready; sleep 60'], {
      onSpawn: (child) =>
        coordinator.failNext(linePrefix, async (response, _, forward) => {
          child.kill('SIGINT')
          // The request is not answered before the signal has arrived.
          if (linePrefix !== 'POST /api/v1/boxes') return
          await waitUntil('the signal has arrived', () => child.killed)
          const created = await forward()
          created.pipe(response.writeHead(created.statusCode ?? 0, created.headers))
        }),
    })
    t.equal(code, 130, linePrefix)
    await waitForDeletion('plum')
  }
  const { code } = await run(['--rm', '--', 'echo ready; sleep 60'], {
    onSpawn: (child) => child.stdout?.once('data', () => child.kill('SIGINT')),
  })
  t.equal(code, 130)
  await waitForDeletion('plum')
})

t.test('--rm deletes the box when the reader closes the pipe', async (t) => {
  const result = await run(['--rm', '--', 'yes'], {
    onSpawn: (child) => child.stdout?.once('data', () => child.stdout?.destroy()),
  })
  t.match(result, { code: 141, stderr: '' })
  await waitForDeletion('plum')
})

t.test('a failure to delete the box is reported, and the exit code is that of the command', async (t) => {
  coordinator.failNext('DELETE /api/v1/boxes/', (response) => {
    response.writeHead(500).end('{"error":"internal_error","message":"Broken."}')
  })
  t.match(await run(['--rm', '--', 'exit 4']), {
    code: 4,
    stderr: /^box: could not delete plum\. Broken\. \(internal_error\) Delete it with `\S*box rm plum`\.\n$/,
  })
  await runBox(coordinator, ['rm', 'plum'])
})

t.test('with --rm, the box stays when the command continues after Ctrl-\\', async (t) => {
  const result = await run(['--rm', '--', 'echo ready; sleep 60'], {
    stdin: null,
    onSpawn: (child) => child.stdout?.once('data', () => child.kill('SIGQUIT')),
  })
  t.match(result, { code: 0, stderr: /detached; the command continues on plum.*the box plum stays/s })
  t.equal(await getState('plum'), 'running')
  await runBox(coordinator, ['rm', 'plum'])
})

t.test('-it runs the command in a terminal', async (t) => {
  const terminal = runBoxInPty(
    t,
    coordinator,
    'box run --name plum --rm -it -- \'tty -s && echo ready && read line && echo "got $line"; exit 4\'',
  )
  await terminal.waitFor('ready')
  terminal.type('typed\r')
  await terminal.waitFor('got typed')
  t.match(await terminal.waitForExit(), { exitCode: 4 })
  await waitForDeletion('plum')
})

t.test('creates no box for wrong usage', async (t) => {
  coordinator.requests.length = 0
  for (const args of [['fig'], ['make', 'test'], ['fig', '--', 'ls']])
    t.match(await runRaw(args), {
      code: 125,
      stderr: /^box: box run creates a box\. Write `--` before the command/,
    })
  t.match(await runRaw(['--rm', 'uname', '-s']), {
    code: 125,
    stderr: /unknown option '-s'\nWrite `--` before the command: `box run -- uname -s`/,
  })
  t.match(await runRaw([]), { code: 125, stderr: /missing required argument/ })
  t.match(await runRaw(['--rm', '-d', '--', 'true']), {
    code: 125,
    stderr: /--rm cannot be combined with -d/,
  })
  t.match(await runRaw(['-it', '--', 'bash']), { code: 125, stderr: /stdin is not a terminal/ })
  t.same(coordinator.requests, [])
})

t.test('without --rm, a box that stays is named also after Ctrl-C', async (t) => {
  const result = await run(['--', 'echo ready; sleep 60'], {
    onSpawn: (child) => child.stdout?.once('data', () => child.kill('SIGINT')),
  })
  t.equal(result.code, 130)
  t.match(result.stderr.split('\n').slice(-2).join('\n'), STAYS)
})
