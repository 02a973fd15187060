// box up, down and status without a coordinator process: which coordinator they select, and which process they signal.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { findDataDirectory } from '../../cli/connection/find-coordinator.ts'
import { readIdentity } from '../../coordinator/providers/parts/proc.ts'
import { firstOutput } from '../support/first-output.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'])

t.test(
  'selects the data directory of a coordinator, else one with a database, else the default',
  async (t) => {
    const root = t.testdir({ here: { '.boxwood': {} }, project: { '.boxwood': {} }, other: {} })
    const here = join(root, 'here')
    const project = join(root, 'project')
    const find = (env = {}) => findDataDirectory(env, here, project)
    t.equal(find(), join(project, '.boxwood'))
    await writeFile(join(here, '.boxwood/boxwood.db'), '')
    t.equal(find(), join(here, '.boxwood'))
    await writeFile(join(project, '.boxwood/coordinator.json'), '{}')
    t.equal(find(), join(project, '.boxwood'))
    t.equal(find({ BOXWOOD_DATA: '../other' }), join(root, 'other'))
  },
)

t.test('does not take or signal another process that has reused the pid of the coordinator', async (t) => {
  const dataDir = t.testdir({})
  const other = spawn('sleep', ['600'])
  await once(other, 'spawn')
  t.teardown(() => other.kill('SIGKILL'))
  const identity = readIdentity(other.pid ?? 0)
  const write = (record: object) => writeFile(join(dataDir, 'coordinator.json'), JSON.stringify(record))
  const box = (command: string) => runBox(null, [command], { env: { BOXWOOD_DATA: dataDir } })
  for (const change of [{ startTicks: 1 }, { bootId: 'of an earlier boot' }, { startTicks: undefined }]) {
    await write({ url: coordinator.url, ...identity, ...change })
    t.match(await box('status'), { code: 3, stdout: /not running/ })
    t.match(await box('down'), { code: 0, stdout: /^Nothing was running/ })
    t.same([other.exitCode, other.signalCode], [null, null], 'the process is still running')
  }
  await write({ url: coordinator.url, ...identity, version: '9.9.9' })
  await writeFile(join(dataDir, 'owner.key'), coordinator.key)
  coordinator.failNext('GET /readyz', (response) => response.end('{"ok":true}'))
  t.match(await box('status'), { code: 0, stdout: /running \(pid \d+\).*9\.9\.9.*1 running/s })
  t.match(await box('up'), { code: 0, stdout: /already running/ })
  t.match(await box('down'), { code: 0, stdout: /are stopped/ })
  t.equal(other.signalCode, 'SIGINT', 'the signal that suspends the boxes')
})

t.test('a coordinator that is stopping gets no further signal', async (t) => {
  const dataDir = t.testdir({})
  // Exits with 7 on a signal, and with 0 when its standard input closes.
  const script =
    "process.on('SIGINT', () => process.exit(7)); process.stdin.on('end', () => process.exit(0)).resume(); console.log('ready')"
  const stopping = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] })
  await firstOutput(stopping)
  t.teardown(() => stopping.kill('SIGKILL'))
  const record = { url: coordinator.url, ...readIdentity(stopping.pid ?? 0) }
  await writeFile(join(dataDir, 'coordinator.json'), JSON.stringify(record))
  coordinator.failNext('GET /readyz', (response) => {
    response.writeHead(503).end('{"ok":false,"reason":"draining"}')
    stopping.stdin.end()
  })
  t.match(await runBox(null, ['down'], { env: { BOXWOOD_DATA: dataDir } }), { code: 0 })
  t.equal(stopping.exitCode, 0)
})

t.test('a coordinator at BOXWOOD_URL has a status, and cannot be started or stopped', async (t) => {
  const cwd = t.testdir({})
  for (const command of ['up', 'down'])
    t.match(await runBox(coordinator, [command], { cwd }), {
      code: 1,
      stderr:
        /^box: BOXWOOD_URL selects the coordinator at .*cannot be (started|stopped).*unset BOXWOOD_URL\.\n$/,
    })
  const status = await runBox(coordinator, ['status', '--json'], { cwd })
  t.equal(status.code, 0)
  t.match(JSON.parse(status.stdout), {
    running: true,
    url: coordinator.url,
    pid: null,
    boxes: { running: 1 },
  })
  t.match(await runBox('http://127.0.0.1:1', ['status'], { cwd }), {
    code: 3,
    stdout: /not running/,
    stderr: /connection refused/,
  })
  t.match(
    await runBox(coordinator, ['status'], { cwd, env: { BOXWOOD_API_KEY: 'dcp_wrong' } }),
    { code: 0, stderr: /key in BOXWOOD_API_KEY was rejected/ },
    'a coordinator that rejects the key is running',
  )
})

t.test('up reports a data directory that cannot be written, and a damaged coordinator.json', async (t) => {
  const dir = t.testdir({ file: '', data: { 'coordinator.json': '{' } })
  t.match(await runBox(null, ['up'], { env: { BOXWOOD_DATA: join(dir, 'file/data') } }), {
    code: 1,
    stderr: /^box: Cannot write .*ENOTDIR.*Set BOXWOOD_DATA/,
  })
  t.match(await runBox(null, ['up'], { env: { BOXWOOD_DATA: join(dir, 'data') } }), {
    code: 1,
    stderr: /coordinator\.json is not valid JSON/,
  })
})
