// box top: the screen, its keys, and how it exits; text and JSON without a screen.
import t from 'tap'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { createFakeAgents } from '../support/box-with-fake-agent.ts'
import { respondError, respondJson } from '../support/fake-prompt-agent.ts'
import { NO_TMUX, startTmux } from '../support/tmux.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox, TEST_PATH } from './run-box.ts'

const MiB = 1024 ** 2
const AT = '2030-01-01T01:00:00.000Z'
const createProcess = (pid: number, fields: object = {}) => ({
  pid,
  ppid: 1,
  user: 'user',
  name: 'sh',
  command: 'sh -c "make world"',
  state: 'S',
  threads: 1,
  cpuPct: 0,
  memBytes: MiB,
  startedAt: '2030-01-01T00:59:00.000Z',
  processId: null,
  ...fields,
})
const LIVE = {
  ok: true,
  type: 'process.list',
  at: AT,
  cpuPct: 48.7,
  cpuCount: 2,
  memUsedBytes: 512 * MiB,
  memTotalBytes: 2048 * MiB,
  total: 3,
  processes: [
    createProcess(9, {
      cpuPct: 97.4,
      state: 'R',
      command: 'node 世界 \u001b[2J',
      processId: 'p_0123456789abcdef',
    }),
    createProcess(3, { memBytes: 300 * MiB, name: 'postgres', command: 'postgres -D data' }),
    createProcess(12, { command: '', name: 'kworker', startedAt: null }),
  ],
}

/** The coordinator replaces control characters. */
const SHOWN = JSON.parse(JSON.stringify(LIVE).replaceAll('\\u001b', '\uFFFD'))

/** What the agent has measured. */
let live: object = LIVE
const PROCESS_ID = 'p_0123456789abcdef01234567'
const RUNNING = {
  processId: PROCESS_ID,
  pid: 9,
  running: true,
  lost: false,
  exitCode: null,
  signal: null,
  timedOut: false,
  startedAt: AT,
  command: 'node',
}
const coordinator = await startCliCoordinator(
  t,
  ['fig'],
  createFakeAgents(async ({ path }) => {
    if (path.startsWith('/processes')) return respondJson(200, live)
    if (path !== '/exec') return respondError(new ApiError('not_found'))
    return respondJson(200, { ok: true, type: 'exec.list', processes: [RUNNING] })
  }),
)
const top = (...args: string[]) => runBox(coordinator, ['top', 'fig', ...args])
const refuseNext = (error: ApiError) =>
  coordinator.respondNext('GET /v1/box/fig/processes', error.status, edgeErrorBody(error))
t.beforeEach(() => {
  live = LIVE
})
/** Line wrap, the cursor and the main screen. */
const RESTORED = '\u001b[?7h\u001b[?25h\u001b[?1049l'

t.test('without a terminal, prints the box and its processes once', async (t) => {
  // With a control character, which the command must not trust.
  coordinator.respondNext('GET /v1/box/fig/processes', 200, LIVE)
  const { code, stdout, stderr } = await top()
  t.equal(code, 0)
  t.equal(stderr, '')
  const [title, usage, empty, ...table] = stdout.trimEnd().split('\n')
  t.match(title, /^fig: running for \S+ +20\d\d-/)
  t.equal(usage, 'CPU 48.7% of 2 CPUs   memory 512 MiB of 2.00 GiB (25%)   3 processes')
  t.equal(empty, '')
  t.same(
    table.map((line) => line.trim().replace(/ +/g, ' ')),
    [
      'PID USER %CPU MEMORY S AGE ID COMMAND',
      '9 user 97.4 1.00 MiB R 1m p_01234567 node 世界 �[2J',
      '3 user 0.0 300 MiB S 1m - postgres -D data',
      '12 user 0.0 1.00 MiB S - - [kworker]',
    ],
  )
  t.match((await top('--sort', 'pid', '-n', '1')).stdout, /^3 .*\n9 .*\n12 /m)
})

t.test('unknown figures, and more processes than are listed', async (t) => {
  live = {
    ...LIVE,
    cpuPct: null,
    cpuCount: null,
    memUsedBytes: null,
    memTotalBytes: null,
    total: 4000,
  }
  t.match((await top()).stdout, /^CPU - {3}memory - {3}4000 processes \(3 listed\)$/m)
})

t.test('--json prints the response; with -n a line each time', async (t) => {
  t.same(JSON.parse((await top('--json')).stdout), SHOWN)
  const lines = (await top('--json', '-n', '2')).stdout.trimEnd().split('\n')
  t.same(
    lines.map((line) => JSON.parse(line)),
    [SHOWN, SHOWN],
  )
})

t.test('with an id, or its first characters, requests the processes of that command', async (t) => {
  for (const typed of [PROCESS_ID, PROCESS_ID.slice(0, 10), PROCESS_ID.slice(2, 10)]) {
    t.match(await top(typed), { code: 0 })
    t.ok(
      coordinator.requests.some(({ line }) => line === `GET /v1/box/fig/processes?processId=${PROCESS_ID}`),
    )
    coordinator.requests.length = 0
  }
  t.match(await top('nosuch'), { code: 5, stdout: '', stderr: /no such process/i })
})

t.test('a box that is missing or not running', async (t) => {
  t.match(await runBox(coordinator, ['top', 'pear']), { code: 5, stderr: /No such box: 'pear'/ })
  refuseNext(new ApiError('box_not_running'))
  t.match(await top(), {
    code: 1,
    stdout: '',
    stderr: /Box fig is not running\. Start it with `box wake fig`/,
  })
})

t.test('a coordinator without this route', async (t) => {
  refuseNext(new ApiError('not_found', 'No such route.'))
  t.match(await top(), { code: 5, stdout: '', stderr: 'box: No such route. (not_found)\n' })
})

t.test('on a terminal, q, Q and Esc exit with 0, Ctrl-C with 130; the screen is restored', async (t) => {
  for (const [key, exitCode] of [
    ['q', 0],
    ['Q', 0],
    ['\u001b', 0],
    ['\u0003', 130],
  ] as const) {
    const pty = runBoxInPty(t, coordinator, 'exec $BOX top fig')
    await pty.waitFor('\u001b[?1049h')
    await pty.waitFor(/postgres -D data/)
    pty.type(key)
    t.match(await pty.waitForExit(), { exitCode }, JSON.stringify(key))
    t.ok(pty.output.includes(RESTORED))
  }
})

t.test('keys sort the processes, and arrow keys do not quit', async (t) => {
  const pty = runBoxInPty(t, coordinator, 'exec $BOX top fig')
  await pty.waitFor(/\r\n9 .*\r\n3 .*\r\n12 /)
  pty.type('\u001b[A')
  pty.type('m')
  await pty.waitFor(/\r\n3 .*\r\n9 .*\r\n12 /)
  pty.type('p')
  await pty.waitFor(/\r\n3 .*\r\n9 .*\r\n12 /)
  pty.type('P')
  await pty.waitFor(/\r\n9 .*\r\n3 .*\r\n12 /)
  pty.type('q')
  t.match(await pty.waitForExit(), { exitCode: 0 })
})

t.test('SIGTERM restores the terminal', async (t) => {
  const pty = runBoxInPty(t, coordinator, 'echo "pid $$."; exec $BOX top fig')
  await pty.waitFor(/postgres/)
  process.kill(Number(/pid (\d+)\./.exec(pty.output)?.[1]), 'SIGTERM')
  t.match(await pty.waitForExit(), { exitCode: 143 })
  t.ok(pty.output.includes(RESTORED))
})

t.test('a box that is suspended or deleted meanwhile ends it with a message', async (t) => {
  const suspended = runBoxInPty(t, coordinator, 'exec $BOX top fig')
  await suspended.waitFor(/postgres/)
  refuseNext(new ApiError('box_not_running'))
  await suspended.waitFor(/Box fig is not running\. Start it with `box wake fig`\./)
  t.match(await suspended.waitForExit(), { exitCode: 1 })
  t.ok(suspended.output.indexOf(RESTORED) < suspended.output.indexOf('Box fig'), 'on the main screen')

  const { id } = await coordinator.addBox('plum')
  const deleted = runBoxInPty(t, coordinator, 'exec $BOX top plum')
  await deleted.waitFor(/postgres/)
  await coordinator.api('DELETE', `/boxes/${id}`)
  await deleted.waitFor(/Box plum was deleted\./)
  t.match(await deleted.waitForExit(), { exitCode: 5 })
})

t.test('keeps the screen while the coordinator restarts, and continues', async (t) => {
  const pty = runBoxInPty(t, coordinator, 'exec $BOX top fig', { cols: 100 })
  await pty.waitFor(/postgres/)
  await coordinator.stopDuring(async () => {
    await pty.waitFor(/postgres -D data.*box: retrying\. Cannot reach the coordinator/s)
  })
  live = { ...LIVE, total: 77 }
  await pty.waitFor(/77 processes/)
  await pty.waitFor(/q quit/)
  pty.type('q')
  t.match(await pty.waitForExit(), { exitCode: 0 })
})

t.test('slow responses: one request at a time, and q quits at once', async (t) => {
  const pty = runBoxInPty(t, coordinator, 'exec $BOX top fig')
  await pty.waitFor(/postgres/)
  let slowRequests = 0
  const slow = new Promise<void>((resolve) => {
    coordinator.failNext('GET /v1/box/fig/processes', () => {
      slowRequests += 1
      resolve()
    })
  })
  await slow
  const before = coordinator.requests.length
  pty.type('m')
  await pty.waitFor(/\r\n3 .*\r\n9 /)
  t.equal(slowRequests, 1)
  t.equal(coordinator.requests.slice(before).filter(({ line }) => line.includes('/processes')).length, 0)
  pty.type('q')
  t.match(await pty.waitForExit(), { exitCode: 0 })
})

t.test('fits every size of the terminal, also after a resize', { skip: NO_TMUX }, async (t) => {
  live = {
    ...LIVE,
    processes: [...LIVE.processes, ...Array.from({ length: 60 }, (_, index) => createProcess(1000 + index))],
  }
  const env = {
    BOXWOOD_URL: `${coordinator.url}/api/v1`,
    BOXWOOD_API_KEY: coordinator.key,
    PATH: TEST_PATH,
    TERM: 'xterm',
  }
  const terminal = await startTmux(t, { cols: 80, rows: 24, env })
  terminal.type('box top fig')
  terminal.press('Enter')
  const screen = await terminal.waitFor(/q quit/)
  t.match(screen, /^fig: running for \S+/)
  t.match(screen, /^9 +user +97\.4 +1\.00 MiB +R +1m +p_01234567 +node 世界/m)
  t.equal(screen.trimEnd().split('\n').length, 24)

  terminal.resize(20, 5)
  const small = await terminal.waitFor(/^CPU 48\.7% of 2 CPU.*\n *PID +%CPU +NAME\n9 +97\.4 +sh\n/)
  t.equal(small.trimEnd().split('\n').length, 5)
  t.notMatch(small, /q quit/)

  terminal.resize(120, 30)
  await terminal.waitFor(/^fig: running[\s\S]*q quit/)
  terminal.press('q')
  const after = await terminal.waitFor(/^local\$ box top fig\nlocal\$/m)
  t.notMatch(after, /postgres/, 'the main screen is shown again')
  terminal.type('stty -a')
  terminal.press('Enter')
  await terminal.waitFor(/ icanon[\s\S]* echo /)
})
