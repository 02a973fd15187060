// Detached processes: exec -d, ps and kill.
import t from 'tap'
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
  add({ command: 'a\nb\u001b[2J', exit: { status: 'lost', exitCode: null, signal: null } })
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
      ['7', 'lost', '0s ago', 'a b\uFFFD[2J'],
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
  t.same(await box('kill', 'fig', running.id, 'p_1', ignoringTerm.id, exited.id), {
    code: 5,
    stdout: '',
    stderr: [
      `${running.id}: terminated (SIGTERM)`,
      "box: No such process on fig: 'p_1'. Run `box ps fig` to list processes.",
      `${ignoringTerm.id}: killed (SIGKILL; it did not exit on SIGTERM)`,
      `${exited.id}: already exited\n`,
    ].join('\n'),
  })
  t.match(JSON.parse((await box('kill', '--json', 'fig', running.id)).stdout), {
    wasRunning: false,
    signal: null,
  })
  t.match(await box('kill', 'plum', 'p_1', 'p_2'), { code: 5, stderr: /^box: No such box: 'plum'.*\n$/ })
})

t.test('on a suspended box, ps and kill name the commands that work', async (t) => {
  for (const [method, ...args] of [
    ['GET', 'ps', 'fig'],
    ['DELETE', 'kill', 'fig', 'p_1', 'p_2'],
  ] as const) {
    fake.handleNext(`${method} /v1/box/fig/exec`, (response) => {
      response.writeHead(409).end('{"ok":false,"error":{"code":"box_not_running","message":"Not running."}}')
    })
    t.match(await box(...args), {
      code: 1,
      stderr: /^box: Box fig is not running\. Start it with `box wake fig`\. `box history fig` and/,
    })
  }
})
