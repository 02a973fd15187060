// Detached processes: exec -d, ps and kill.
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { runBoxInPty } from './box-in-pty.ts'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { addFakeProcesses, createStartedHandler } from './fake-processes.ts'
import { runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const { add } = addFakeProcesses(fake)
const box = (...args: string[]) => runBox(fake.url, args)
const id = 'p_0123456789abcdef01234567'

t.test('exec -d prints only the id, and sends all options', async (t) => {
  let body: unknown
  const handleStart = () =>
    fake.handleNext(
      'POST /v1/box/fig/exec',
      createStartedHandler(id, (requestBody) => {
        body = requestBody
      }),
    )
  handleStart()
  t.same(await box('exec', '-d', 'fig', '--', 'make', 'my world'), { code: 0, stdout: `${id}\n`, stderr: '' })
  t.same(body, { command: "make 'my world'", detached: true })
  handleStart()
  const options = ['--cwd', 'src', '--env', 'A=1', '--timeout', '60', '--json']
  const { stdout } = await box('exec', '--detach', ...options, 'fig', '--', 'make')
  t.match(JSON.parse(stdout), { type: 'exec.started', processId: id, logPath: String })
  t.same(body, { command: 'make', cwd: 'src', env: { A: '1' }, timeoutSeconds: 60, detached: true })
})

t.test('exec -d without a response says that the command may have started', async (t) => {
  fake.handleNext('POST /v1/box/fig/exec', (response) => response.destroy())
  t.match(await box('exec', '-d', 'fig', '--', 'make'), {
    code: 125,
    stdout: '',
    stderr: /Cannot reach.*may have started anyway: check with `box ps fig`/,
  })
})

t.test('Ctrl-C before the response of exec says that the command may have started', async (t) => {
  const args = ['exec', '--env', 'TOKEN=secret-value', 'fig', '--', 'sleep 60']
  const result = await runBox(fake.url, args, {
    onSpawn: (child) => fake.handleNext('POST /v1/box/fig/exec', () => child.kill('SIGINT')),
  })
  t.same(result, {
    code: 130,
    stdout: '',
    stderr: 'box: interrupted. If the command on fig was started, it is terminated after 60 s.\n',
  })
})

t.test('ps prints a row for each detached process', async (t) => {
  t.match(await box('ps', 'fig'), { code: 0, stdout: '', stderr: /No detached processes.*box exec -d fig/ })
  add({ command: 'a\u001b[2J\nb', exit: { status: 'lost', exitCode: null, signal: null } })
  add({ exit: { status: 'killed', exitCode: null, signal: 'KILL' } })
  add({ exit: { status: 'exited', exitCode: 3, signal: null } })
  add({ exit: { status: 'killed', exitCode: null, signal: 'TERM', timedOut: true } })
  add({ exit: null })
  const { code, stdout } = await box('ps', 'fig')
  const [header = '', ...rows] = stdout.trimEnd().split('\n')
  t.equal(code, 0)
  t.match(header, /^ID +PID +STATE +STARTED +COMMAND$/)
  t.same(
    rows.map((row) => row.split(/ {2,}/).slice(1)),
    [
      ['7', 'running', '0s ago', 'make world'],
      ['7', 'timed_out TERM', '0s ago', 'make world'],
      ['7', 'exited 3', '0s ago', 'make world'],
      ['7', 'killed KILL', '0s ago', 'make world'],
      ['7', 'lost', '0s ago', 'a\uFFFD[2J …'],
    ],
  )
  const { processes } = JSON.parse((await box('ps', 'fig', '--json')).stdout)
  t.equal(processes.length, 5)
  t.match(await box('ps', 'plum'), { code: 5, stderr: /No such box: 'plum'/ })
})

t.test('kill prints the signal that was needed, and continues after an id that does not exist', async (t) => {
  const [running, ignoringTerm, exited] = [
    add({ exit: null }),
    add({ command: "trap '' TERM", exit: null }),
    add(),
  ]
  t.same(await box('kill', 'fig', running.id, 'p_x', ignoringTerm.id, exited.id), {
    code: 5,
    stdout: '',
    stderr: [
      `${running.id}: terminated (SIGTERM)`,
      "box: No such process on fig: 'p_x'. Run `box ps fig` to list processes.",
      `${ignoringTerm.id}: killed (SIGKILL; it did not exit on SIGTERM)`,
      `${exited.id}: already exited\n`,
    ].join('\n'),
  })
  t.match(JSON.parse((await box('kill', '--json', 'fig', running.id)).stdout), {
    wasRunning: false,
    signal: null,
  })
  t.match(await box('kill', 'plum', 'p_x', 'p_y'), { code: 5, stderr: /^box: No such box: 'plum'.*\n$/ })
})

t.test('on a suspended box, kill names the commands that work', async (t) => {
  fake.handleNext('DELETE /v1/box/fig/exec', respondNotRunning)
  t.match(await box('kill', 'fig', id, 'p_y'), {
    code: 1,
    stderr: /^box: Box fig is not running\. Start it with `box wake fig`\. `box history fig` and/,
  })
})

t.test('a unique prefix identifies a process, with and without p_', async (t) => {
  const first = add({ id: 'p_abc100000000000000000000', stdout: Buffer.from('1\n'), exit: null })
  const second = add({ id: 'p_abc200000000000000000000', stdout: Buffer.from('2\n'), command: 'sleep 9' })
  t.same(await box('logs', 'fig', 'p_abc1'), { code: 0, stdout: '1\n', stderr: '' })
  t.same(await box('logs', 'fig', 'abc2'), { code: 0, stdout: '2\n', stderr: '' })
  t.same(await box('logs', 'fig', 'abc'), {
    code: 2,
    stdout: '',
    stderr: [
      "box: 'p_abc' matches 2 processes of fig. Type more characters:",
      `  ${second.id}  sleep 9`,
      `  ${first.id}  make world\n`,
    ].join('\n'),
  })
  t.match(await box('kill', 'fig', 'abc', 'p_abc1'), {
    code: 2,
    stderr: new RegExp(`matches 2 processes of fig[^]*\n${first.id}: terminated \\(SIGTERM\\)\n$`),
  })
})

t.test('without an id, logs prints the newest process; kill needs an id', async (t) => {
  add({ stdout: Buffer.from('old\n') })
  const { id: newest } = add({ stdout: Buffer.from('new\n'), command: 'make\u001b[2J' })
  t.same(await box('logs', 'fig'), { code: 0, stdout: 'new\n', stderr: '' })
  const pty = runBoxInPty(t, fake.url, 'box logs fig')
  await pty.waitFor(`box: newest process ${newest}: make\uFFFD[2J\r\nnew\r\n`)
  await pty.waitForExit()
  t.match(await box('kill', 'fig'), { code: 2, stderr: /missing required argument 'id'/ })
})

const respondNotRunning = (response: ServerResponse) => {
  response.writeHead(409).end('{"ok":false,"error":{"code":"box_not_running","message":"Not running."}}')
}
