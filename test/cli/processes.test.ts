// Detached commands: started by exec -d, listed by ps, ended by kill.
import t from 'tap'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { fakeProcesses, startedAs } from './fake-processes.ts'
import { runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const { add } = fakeProcesses(fake)
const box = (...args: string[]) => runBox(fake.url, args)
const id = 'p_0123456789abcdef01234567'

t.test('exec -d prints the id alone, and passes on every option', async (t) => {
  let sent: unknown
  const starts = () =>
    fake.answerNext(
      'POST /v1/box/fig/exec',
      startedAs(id, (request) => (sent = request)),
    )
  starts()
  t.same(await box('exec', '-d', 'fig', '--', 'make', 'my world'), { code: 0, stdout: `${id}\n`, stderr: '' })
  t.same(sent, { command: "make 'my world'", detached: true })
  starts()
  const options = ['--cwd', 'src', '--env', 'A=1', '--timeout', '60', '--json']
  const seen = await box('exec', '--detach', ...options, 'fig', '--', 'make')
  t.match(JSON.parse(seen.stdout), { type: 'exec.started', processId: id, logPath: String })
  t.same(sent, { command: 'make', cwd: 'src', env: { A: '1' }, timeoutSeconds: 60, detached: true })
})

t.test('a start whose answer was lost says that it may have happened', async (t) => {
  fake.answerNext('POST /v1/box/fig/exec', (response) => response.destroy())
  t.match(await box('exec', '-d', 'fig', '--', 'make'), {
    code: 125,
    stdout: '',
    stderr: /Cannot reach.*may have been started.*box ps fig/,
  })
})

t.test('Ctrl-C on a synchronous exec gives the line that runs it detached, without values', async (t) => {
  const args = ['exec', '--env', 'TOKEN=hush', '--cwd', 'a b', 'fig', '--', "echo 'x'; sleep 60"]
  const seen = await runBox(fake.url, args, {
    meanwhile: (child) => fake.answerNext('POST /v1/box/fig/exec', () => child.kill('SIGINT')),
  })
  t.match(seen, { code: 130, stdout: '' })
  t.match(seen.stderr, `  box exec -d --cwd 'a b' --env TOKEN fig -- 'echo '\\''x'\\''; sleep 60'\n`)
  t.notMatch(seen.stderr, /hush/)
})

t.test('ps', async (t) => {
  t.match(await box('ps', 'fig'), { code: 0, stdout: '', stderr: /No detached process.*box exec -d fig/ })
  add({ command: 'a\nb\u001b[2J', end: { status: 'lost', exitCode: null, signal: null } })
  add({ end: { status: 'killed', exitCode: null, signal: 'KILL' } })
  add({ end: { status: 'exited', exitCode: 3, signal: null } })
  add({ end: null })
  const { code, stdout } = await box('ps', 'fig')
  const [head = '', ...rows] = stdout.trimEnd().split('\n')
  t.equal(code, 0)
  t.match(head, /^ID +PID +STATE +STARTED +COMMAND$/)
  t.same(
    rows.map((row) => row.split(/ {2,}/).slice(1)),
    [
      ['7', 'running', '0s ago', 'make world'],
      ['7', 'exited 3', '0s ago', 'make world'],
      ['7', 'killed KILL', '0s ago', 'make world'],
      ['7', 'lost', '0s ago', 'a b\uFFFD[2J'],
    ],
  )
  const { processes } = JSON.parse((await box('ps', 'fig', '--json')).stdout)
  t.equal(processes.length, 4)
  t.match(await box('ps', 'plum'), { code: 5, stderr: /no box plum/ })
})

t.test('kill says what was needed, and goes on after one that is not there', async (t) => {
  const [soft, hard, over] = [add({ end: null }), add({ command: "trap '' TERM", end: null }), add()]
  t.same(await box('kill', 'fig', soft.id, 'p_1', hard.id, over.id), {
    code: 5,
    stdout: '',
    stderr: [
      `${soft.id}: ended by TERM`,
      'box: There is no process p_1 on fig. `box ps fig` shows those there are.',
      `${hard.id}: ended by KILL: TERM did not suffice`,
      `${over.id}: had ended already\n`,
    ].join('\n'),
  })
  t.match(JSON.parse((await box('kill', '--json', 'fig', soft.id)).stdout), {
    wasRunning: false,
    signal: null,
  })
  t.match(await box('kill', 'plum', 'p_1', 'p_2'), { code: 5, stderr: /^box: There is no box plum.*\n$/ })
})

t.test('a suspended box', async (t) => {
  for (const [line, ...args] of [
    ['GET', 'ps', 'fig'],
    ['DELETE', 'kill', 'fig', 'p_1', 'p_2'],
  ] as const) {
    fake.answerNext(`${line} /v1/box/fig/exec`, (response) => {
      response.writeHead(409).end('{"ok":false,"error":{"code":"box_not_running","message":"It is not."}}')
    })
    t.match(await box(...args), { code: 1, stderr: /^box: fig is not running\. `box wake fig`/ })
  }
})
