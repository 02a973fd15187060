// The commands create, ls, show, suspend, wake, rm and me: output, exit codes, retries and usage errors.

import t from 'tap'
import { CLI_VERSION_HEADER } from '../../shared/protocol.ts'
import { VERSION } from '../../shared/version.ts'
import { createVitals, startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t)
const box = (...args: string[]) => runBox(coordinator, args)
const boxJson = async (...args: string[]) => JSON.parse((await box(...args, '--json')).stdout)

t.test('create waits until the box runs; prints its name on stdout, its states on stderr', async (t) => {
  coordinator.holdUntilPolled('create')
  t.match(await box('create', '--name', 'fig', '--tier', 'pro'), {
    code: 0,
    stdout: 'fig\n',
    stderr: /^fig: provisioning\n(.*\n)*fig: running\n$/,
  })
  t.match(await coordinator.findBox('fig'), { tier: 'pro' })
  t.match(await box('create', '--name', 'fig'), { code: 1, stderr: /\(name_taken\)/ })
})

t.test('create has options for all settings', async (t) => {
  const options = '--region us-east-1 --env A=1 -e B=2=3 --ttl 60 --delete-after 1d --auto-pause 2h --no-wait'
  t.same(await box('create', 'lime', ...options.split(' ')), {
    code: 0,
    stdout: 'lime\n',
    stderr: '',
  })
  t.match(await coordinator.findBox('lime'), {
    region: 'us-east-1',
    envVars: [
      { name: 'A', value: '1' },
      { name: 'B', value: '2=3' },
    ],
    pauseAt: /Z$/,
    deleteAt: /Z$/,
    autoPauseMin: 120,
  })
  await box('rm', 'lime')
})

t.test('create takes the name as an argument or an option, and refuses two names', async (t) => {
  t.match(await box('create', 'cherry'), { code: 0, stdout: 'cherry\n' })
  t.match(await box('create', 'cherry'), { code: 1, stderr: /\(name_taken\)/ })
  t.match(await box('create', 'lime', '--name', 'lime'), { code: 0, stdout: 'lime\n' })
  t.same(await box('create', 'kiwi', '--name', 'lime'), {
    code: 2,
    stdout: '',
    stderr: "box: Two names were given: 'kiwi' and 'lime' (--name). Use one.\n",
  })
  await box('rm', 'cherry')
  await box('rm', 'lime')
})

t.test('create reports why provisioning failed', async (t) => {
  const job = { op: 'create', step: 'make', attempt: 3, lastError: 'the disk is full', nextRetryAt: null }
  coordinator.changeDetailNext({ observedState: 'provision_failed' }, { job })
  t.match(await box('create', '--name', 'kiwi'), {
    code: 1,
    stderr:
      'box: Could not create kiwi: the disk is full. Delete it with `box rm kiwi` and create another.\n',
  })
  await box('rm', 'kiwi')
})

t.test('ls prints a row for each live box; --all includes terminated boxes', async (t) => {
  const { code, stdout } = await box('ls')
  const [header, row] = stdout.split('\n')
  t.equal(code, 0)
  t.match(header, /^NAME +STATE +TIER +ISOLATION +IMAGE +AGE$/)
  t.match(row, /^fig +running +pro +process +- +\d+s$/)
  t.match(await boxJson('ls'), { boxes: [{ hostname: 'fig' }] })
  t.match(await boxJson('ls', '--all'), { boxes: [{ hostname: 'kiwi', observedState: 'terminated' }] })
})

t.test('show prints the names of variables without their values, and no control characters', async (t) => {
  const { id } = await coordinator.findBox('fig')
  await coordinator.api('PATCH', `/boxes/${id}`, { env: { TOKEN: 'secret-value' } })
  coordinator.changeNext('GET /api/v1/boxes/', (detail) => {
    detail.events[0].reason = 'agent\u001b[2J'
  })
  const { code, stdout } = await box('show', 'fig')
  t.equal(code, 0)
  t.match(stdout, /^variables +TOKEN$/m)
  t.match(stdout, /bootstrapping → running/)
  t.notMatch(stdout, /secret-value/)
  t.notOk(stdout.includes('\u001b'))
  t.match(await boxJson('show', id), { box: { hostname: 'fig' }, events: [{}] })
})

t.test('show prints the usage and the agent of a box', async (t) => {
  const { id } = await coordinator.findBox('fig')
  coordinator.instance.context.heartbeats.record(
    id,
    createVitals({
      coding_agents: { claude: 'ready', codex: 'not_signed_in', opencode: 'not_installed', pi: 'ready' },
    }),
  )
  const { promise, resolve } = Promise.withResolvers<void>()
  coordinator.infra.before.stop = () => promise
  await box('suspend', 'fig', '--no-wait')
  const { stdout } = await box('show', 'fig')
  t.match(stdout, /^state +suspending for \d+s, desired state suspended$/m)
  t.match(stdout, /^agent +connected, version 1\.2\.3$/m)
  t.match(stdout, /^usage +CPU 1%, memory 20%, disk 3%$/m)
  t.match(stdout, /^ports +1 listening \(box ports fig\)$/m)
  t.match(stdout, /^idle +for 2m 30s$/m)
  t.match(stdout, /^coding agents +claude: ready, codex: not signed in, opencode: not installed, pi: ready$/m)
  delete coordinator.infra.before.stop
  resolve()
  await coordinator.waitForState(id, 'suspended')
})

t.test('show omits the last usage of a box that is not connected', async (t) => {
  const { stdout } = await box('show', 'fig')
  t.match(stdout, /^agent +not connected, version 1\.2\.3$/m)
  t.notMatch(stdout, /^(usage|ports|idle) /m)
  await box('wake', 'fig')
})

t.test('show prints the machine; what is unknown is "-"', async (t) => {
  const machine = {
    os: 'Debian 13\u001b[2J',
    kernel: 'Linux 6.12',
    arch: 'x64',
    cpuModel: 'EPYC',
    cpuCount: 0.5,
    memoryBytes: 2 * 1024 ** 3,
    diskBytes: null,
  }
  const vitals = createVitals({ cpu_pct: null, disk_pct: null, listeners_count: 0 })
  coordinator.changeDetailNext({}, { vitals, machine })
  const { stdout } = await box('show', 'fig')
  t.match(stdout, /^system +Debian 13\uFFFD\[2J, Linux 6\.12, x64$/m)
  t.match(stdout, /^machine +0\.5 CPUs \(EPYC\), memory 2\.00 GiB, disk -$/m)
  t.match(stdout, /^usage +CPU -, memory 20%, disk -$/m)
  t.match(stdout, /^ports +0 listening$/m)
})

t.test('suspend and wake wait for the state', async (t) => {
  t.match(await box('suspend', 'fig'), { code: 0, stdout: '', stderr: /fig: suspended\n$/ })
  t.match(await boxJson('wake', 'fig'), { hostname: 'fig', observedState: 'running' })
})

t.test('--no-wait prints the change in progress', async (t) => {
  t.same(await box('suspend', 'fig', '--no-wait'), { code: 0, stdout: '', stderr: 'fig: suspending\n' })
  t.match(await box('wait', 'fig'), { code: 0 })
  t.same(await box('wake', 'fig', '--no-wait'), { code: 0, stdout: '', stderr: 'fig: waking\n' })
  t.match(await box('wait', 'fig'), { code: 0 })
})

t.test('cp from a box that is suspended meanwhile names the command that starts it', async (t) => {
  coordinator.failNext('GET /v1/box/fig/download', (response) => {
    response.writeHead(409).end('{"ok":false,"error":{"code":"box_not_running","message":"Not running."}}')
  })
  t.match(await box('cp', 'fig:x', '.'), {
    code: 1,
    stderr: 'box: Box fig is not running. Start it with `box wake fig`. (box_not_running)\n',
  })
})

t.test('exec on a box that could not be created says what the coordinator says', async (t) => {
  coordinator.respondNext('POST /v1/box/fig/exec', 409, {
    ok: false,
    error: { code: 'box_not_running', message: 'Delete it and create another.', state: 'provision_failed' },
  })
  t.match(await box('exec', 'fig', 'true'), {
    code: 125,
    stderr: 'box: Delete it and create another. (box_not_running)\n',
  })
})

t.test('rm waits for the operation', async (t) => {
  t.match(await boxJson('rm', 'fig'), { box: { hostname: 'fig' }, operation: { status: 'completed' } })
  t.match(await box('rm', 'fig'), {
    code: 5,
    stderr: "box: No such box: 'fig'. It was deleted: `box history fig` shows its commands.\n",
  })
  t.same(await box('rm', '-f', 'fig'), { code: 0, stdout: '', stderr: '' })
})

t.test('me, also as whoami, prints the user', async (t) => {
  t.match(await box('whoami'), { code: 0, stdout: /^user +Owner \(owner\)$/m })
  t.match(await boxJson('me'), { edge: { url: coordinator.url } })
})

t.test('me --json has a short form of each box that is not deleted', async (t) => {
  const { id } = await coordinator.addBox('kiwi')
  const { boxes, ...account } = await boxJson('me')
  t.same(boxes, [{ id, hostname: 'kiwi', observedState: 'running' }])
  t.match(account, { user: { name: 'Owner' }, key: { id: /^key_/ }, billing: { balanceMicros: 0 } })
  await box('rm', 'kiwi')
})

t.test('every request carries the version of the command', async (t) => {
  t.ok(coordinator.requests.every(({ headers }) => headers[CLI_VERSION_HEADER] === VERSION))
})

t.test('retries after a 429, up to a limit', async (t) => {
  const rateLimitNext = () =>
    coordinator.failNext('GET /api/v1/me', (response) => {
      response.writeHead(429, { 'retry-after': '0' }).end('{"error":"rate_limited","message":"Too many."}')
    })
  rateLimitNext()
  t.match(await box('me'), { code: 0 })
  for (let count = 0; count < 5; count++) rateLimitNext()
  t.match(await box('me'), { code: 1, stderr: /Too many\. \(rate_limited\)/ })
})

t.test('a usage error has the same prefix as other errors, and names the help of the command', async (t) => {
  t.match(await box('paint'), { code: 2, stderr: /^box: unknown command 'paint'\n.*See 'box --help'\.\n$/s })
  t.same(await box('ls', '--color'), {
    code: 2,
    stdout: '',
    stderr: "box: unknown option '--color'\nSee 'box ls --help'.\n",
  })
  t.match(await box(), { code: 2, stderr: /Usage: box/ })
})

t.test('rejects an invalid number and names the option as typed', async (t) => {
  const create = (...args: string[]) => box('create', ...args)
  const ttl =
    'box: --ttl must be a duration from 5m to 30d in whole minutes, such as 90m, 2h or 1d. A number alone is minutes.\n'
  t.same(await create('--ttl', 'long'), { code: 2, stdout: '', stderr: ttl })
  t.same(await create('--ttl', '5.5'), { code: 2, stdout: '', stderr: ttl })
  t.same(await create('--ttl', '4'), { code: 2, stdout: '', stderr: ttl })
  t.same(await create('--ttl', '43201'), { code: 2, stdout: '', stderr: ttl })
  t.match(await create('--auto-pause', '29'), {
    code: 2,
    stderr: /^box: --auto-pause must be a duration from 30m to 7d in whole minutes/,
  })
})

t.test('rejects an invalid --env', async (t) => {
  t.match(await box('create', '--env', '1=x'), {
    code: 2,
    stderr: 'box: --env must be NAME=VALUE or NAME.\n',
  })
  t.match(await box('create', '--env', 'BOXWOOD_UNSET'), {
    code: 2,
    stderr: 'box: BOXWOOD_UNSET is not set in this environment. Use --env BOXWOOD_UNSET=VALUE.\n',
  })
})
