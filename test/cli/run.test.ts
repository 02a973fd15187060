// box run: a command in a new box, which stays, or is deleted with --rm after every outcome.
import t from 'tap'
import { waitUntil } from '../support/wait-until.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { type BoxOptions, runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
const run = (args: string[], options: BoxOptions = {}) => runBox(fake.url, ['run', ...args], options)
const getState = (name: string) => fake.boxes.find(({ hostname }) => hostname === name)?.observedState
const STAYS = /^box: the box plum stays\. Delete it with `\S*box rm plum`\.\n$/

t.test('creates a box, runs the command with stdin, and exits with its code', async (t) => {
  let body = ''
  fake.handleNext('POST /api/v1/boxes', async (response, request) => {
    for await (const chunk of request) body += chunk
    response.writeHead(202).end(JSON.stringify({ box: await fake.addBox('plum') }))
  })
  const result = await run(
    ['--tier', 'pro', '-e', 'A=1', '-w', '/', '--', 'pwd; cat; echo oops >&2; exit 3'],
    {
      stdin: 'typed\n',
    },
  )
  t.match(result, { code: 3, stdout: '/\ntyped\n' })
  t.match(result.stderr, /^oops\nbox: the box plum stays/)
  t.same(JSON.parse(body), { tier: 'pro', env: { A: '1' } })
  t.equal(fake.attached.last.request.env, undefined, 'the box sets the variables')
  t.equal(getState('plum'), 'running')
  t.match(await run(['--name', 'plum', '--', 'true']), { code: 125, stderr: /\(name_taken\)/ })
  t.equal(getState('plum'), 'running', 'an existing box is not deleted')
  await runBox(fake.url, ['rm', 'plum'])
})

t.test('--rm deletes the box after success and failure, and prints nothing', async (t) => {
  t.same(await run(['--rm', '--', 'printf', '%s', '-n']), { code: 0, stdout: '-n', stderr: '' })
  t.equal(getState('plum'), 'terminated')
  t.same(await run(['--rm', '--name', 'kiwi', '--', 'exit 7']), { code: 7, stdout: '', stderr: '' })
  t.equal(getState('kiwi'), 'terminated')
  const json = await run(['--rm', '--json', '--', 'echo out'])
  t.match(JSON.parse(json.stdout), { type: 'exec.result', stdout: 'out\n' })
  t.same([json.stderr, getState('plum')], ['', 'terminated'])
})

t.test('--rm deletes the box when it does not start, and when the command cannot be started', async (t) => {
  fake.handleNext('GET /api/v1/boxes/', (response) => {
    const box = { ...fake.boxes[0], observedState: 'provision_failed' }
    response.end(JSON.stringify({ box, job: null, events: [] }))
  })
  t.match(await run(['--rm', '--', 'true']), { code: 125, stderr: /Could not create plum/ })
  t.equal(getState('plum'), 'terminated')
  fake.handleNext('POST /v1/box/plum/exec', (response) => {
    response.writeHead(502).end('{"ok":false,"error":{"code":"exec_failed","message":"It failed."}}')
  })
  t.match(await run(['--rm', '--', 'true']), { code: 125, stderr: 'box: It failed. (exec_failed)\n' })
  t.equal(getState('plum'), 'terminated')
})

t.test('--rm deletes the box after Ctrl-C, before and while the command runs', async (t) => {
  for (const linePrefix of ['POST /api/v1/boxes', 'GET /api/v1/boxes/', 'POST /v1/box/plum/exec']) {
    const { code } = await run(['--rm', '--', 'echo ready; sleep 60'], {
      onSpawn: (child) =>
        fake.handleNext(linePrefix, async (response) => {
          child.kill('SIGINT')
          // The request is not answered before the signal has arrived.
          if (linePrefix !== 'POST /api/v1/boxes') return
          await waitUntil('the signal has arrived', () => child.killed)
          response.writeHead(202).end(JSON.stringify({ box: await fake.addBox('plum') }))
        }),
    })
    t.equal(code, 130, linePrefix)
    t.equal(getState('plum'), 'terminated', linePrefix)
  }
  const { code } = await run(['--rm', '--', 'echo ready; sleep 60'], {
    onSpawn: (child) => child.stdout?.once('data', () => child.kill('SIGINT')),
  })
  t.equal(code, 130)
  t.equal(getState('plum'), 'terminated')
})

t.test('--rm deletes the box when the reader closes the pipe', async (t) => {
  const result = await run(['--rm', '--', 'yes'], {
    onSpawn: (child) => child.stdout?.once('data', () => child.stdout?.destroy()),
  })
  t.match(result, { code: 141, stderr: '' })
  t.equal(getState('plum'), 'terminated')
})

t.test('a failure to delete the box is reported, and the exit code is that of the command', async (t) => {
  fake.handleNext('DELETE /api/v1/boxes/', (response) => {
    response.writeHead(500).end('{"error":"internal_error","message":"Broken."}')
  })
  t.match(await run(['--rm', '--', 'exit 4']), {
    code: 4,
    stderr: /^box: could not delete plum\. Broken\. \(internal_error\) Delete it with `\S*box rm plum`\.\n$/,
  })
  await runBox(fake.url, ['rm', 'plum'])
})

t.test('with --rm, the box stays when the command continues after Ctrl-\\', async (t) => {
  const result = await run(['--rm', '--', 'echo ready; sleep 60'], {
    stdin: null,
    onSpawn: (child) => child.stdout?.once('data', () => child.kill('SIGQUIT')),
  })
  t.match(result, { code: 0, stderr: /detached; the command continues on plum.*the box plum stays/s })
  t.equal(getState('plum'), 'running')
  process.kill(-(fake.attached.last.child.pid ?? 0), 'SIGKILL')
  await runBox(fake.url, ['rm', 'plum'])
})

t.test('-it runs the command in a terminal', async (t) => {
  const terminal = runBoxInPty(
    t,
    fake.url,
    'box run --rm -it -- \'tty -s && read line && echo "got $line"; exit 4\'',
  )
  await waitUntil('the session is started', () => fake.terminals.all.length > 0)
  terminal.type('typed\r')
  await terminal.waitFor('got typed')
  t.match(await terminal.waitForExit(), { exitCode: 4 })
  t.equal(getState('plum'), 'terminated')
})

t.test('creates no box for wrong usage', async (t) => {
  fake.requests.length = 0
  for (const args of [['fig'], ['make', 'test'], ['fig', '--', 'ls']])
    t.match(await run(args), {
      code: 125,
      stderr: /^box: box run creates a box\. Write `--` before the command/,
    })
  t.match(await run(['--rm', 'uname', '-s']), {
    code: 125,
    stderr: /unknown option '-s'\nWrite `--` before the command: `box run -- uname -s`/,
  })
  t.match(await run([]), { code: 125, stderr: /missing required argument/ })
  t.match(await run(['--rm', '-d', '--', 'true']), { code: 125, stderr: /--rm cannot be combined with -d/ })
  t.match(await run(['-it', '--', 'bash']), { code: 125, stderr: /stdin is not a terminal/ })
  t.same(fake.requests, [])
})

t.test('without --rm, a box that stays is named also after Ctrl-C', async (t) => {
  const result = await run(['--', 'echo ready; sleep 60'], {
    onSpawn: (child) => child.stdout?.once('data', () => child.kill('SIGINT')),
  })
  t.equal(result.code, 130)
  t.match(result.stderr.split('\n').slice(-2).join('\n'), STAYS)
})
