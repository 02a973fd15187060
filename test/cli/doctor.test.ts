// box doctor: the checks, what they advise, and the exit code.
import { once } from 'node:events'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { Check } from '../../cli/doctor/check.ts'
import { checkCopies, checkEngines } from '../../cli/doctor/machine-checks.ts'
import { checkNativeParts, checkPackages } from '../../cli/doctor/program-checks.ts'
import { listen } from '../../coordinator/http/listen.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox, type Target } from './run-box.ts'

const coordinator = await startCliCoordinator(t, [])
/** Their advice can be an offer. */
const OFFERS = ['docker', 'podman', 'incus', 'engines', 'copies']
/** Does not exist. */
const dataDir = join(createTempDir(t, 'doctor'), 'data')

async function diagnose(target: Target | null, env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await runBox(target, ['doctor', '--json'], {
    env: { ...(target === null && { BOXWOOD_DATA: dataDir, BOXWOOD_LISTEN: '127.0.0.1:0' }), ...env },
  })
  const { checks, failures } = JSON.parse(stdout || stderr) as { checks: Check[]; failures: number }
  t.equal(code, failures > 0 ? 1 : 0, 'the exit code')
  for (const { name, status, advice } of checks.filter(({ name }) => !OFFERS.includes(name)))
    t.equal(advice === null, status === 'ok', `advice of ${name}`)
  return Object.fromEntries(checks.map((check) => [check.name, check])) as Record<string, Check>
}

t.test('a running coordinator on this machine', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const checks = await diagnose(null, { BOXWOOD_DATA: coordinator.dataDir })
  for (const name of ['box', 'node', 'packages', 'disk', 'coordinator', 'version', 'API key', 'boxes'])
    t.match(checks[name], { status: 'ok' }, name)
  t.match(checks.coordinator, { message: coordinator.url })
  t.notOk(checks.address, 'the address is not checked: the coordinator uses it')
  for (const name of ['isolation', 'network', 'limits', 'native parts']) t.ok(checks[name], name)
})

t.test('no coordinator is running', async (t) => {
  const checks = await diagnose(null)
  t.match(checks.coordinator, { status: 'warn', advice: 'Start it with `box up`.' })
  t.match(checks.address, { status: 'ok', message: /is free/ })
})

t.test('the port is in use: fails with the reason', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const listen = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const { code, stdout } = await runBox(null, ['doctor'], {
    env: { BOXWOOD_DATA: dataDir, BOXWOOD_LISTEN: listen },
  })
  t.equal(code, 1)
  t.match(
    stdout,
    new RegExp(
      `^fail +address +${listen} cannot be used\n +The coordinator cannot listen.*BOXWOOD_LISTEN`,
      'm',
    ),
  )
  t.match(stdout, /\n\n1 failure, .*warning/)
})

t.test('a coordinator uses the port: one that is starting is no other program', async (t) => {
  const listening = await listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => listening.server.close())
  const starting = await diagnose(null, { BOXWOOD_LISTEN: new URL(listening.url).host })
  t.match(starting.address, { status: 'warn', message: /^a coordinator is starting at /, advice: /^Wait / })
  const other = await diagnose(null, { BOXWOOD_LISTEN: new URL(coordinator.instance.url).host })
  t.match(other.address, { status: 'fail', message: /^a coordinator with another data directory uses / })
})

t.test('reports an invalid variable of the coordinator', async (t) => {
  const checks = await diagnose(null, { BOXWOOD_LISTEN: 'here' })
  t.match(checks.configuration, { status: 'fail', message: /^BOXWOOD_LISTEN must be host:port/ })
})

t.test('reports a Postgres database that cannot be used, without its password', async (t) => {
  const url = 'postgres://boxwood:pg-secret@127.0.0.1:9/boxwood'
  const checks = await diagnose(null, { BOXWOOD_DATABASE_URL: url })
  t.match(checks.database, { status: 'fail', advice: /^Postgres at 127\.0\.0\.1:9 cannot be reached/ })
  t.notMatch(JSON.stringify(checks), 'pg-secret')
})

t.test('reports the isolation that the configuration selects', async (t) => {
  const checks = await diagnose(null, { BOXWOOD_LOCAL_ISOLATION: 'process', BOXWOOD_LOCAL_NETWORK: 'host' })
  t.match(checks.isolation, { status: 'ok', message: 'process' })
  t.match(checks.network, { status: 'ok', message: /^boxes share the network/ })
})

t.test('offers an engine that runs, and warns of one that a region needs', async (t) => {
  const socket = join(createTempDir(t, 'engine'), 'docker.sock')
  const engine = createHttpServer((_, response) => response.end('{"ServerVersion":"28.2.2"}')).listen(socket)
  await once(engine, 'listening')
  t.teardown(() => engine.close())
  const env = { BOXWOOD_DOCKER_HOST: `unix://${socket}`, BOXWOOD_PODMAN_HOST: `unix://${socket}.missing` }
  const { docker } = await diagnose(null, env)
  t.match(docker, {
    status: 'ok',
    message: /^Docker 28\.2\.2 .*: boxes with root and images/,
    advice:
      'To add it, stop Boxwood and start it with: BOXWOOD_REGIONS=us-west-2=local,us-east-1=docker npm start',
  })
  const regions = 'us-west-2=local,us-east-1=docker,us-east-2=podman'
  const checks = await diagnose(null, { ...env, BOXWOOD_REGIONS: regions })
  t.match(checks.docker, { status: 'ok', message: /live resize; us-east-1$/, advice: null })
  t.match(checks.podman, { status: 'warn', message: /^Podman: does not run/, advice: /podman\.socket/ })
})

t.test('says what copies of boxes cost on the file system of the data directory', async (t) => {
  t.match(checkCopies({ hasReflinks: true }), [{ name: 'copies', status: 'ok', advice: null }])
  t.match(checkCopies({ hasReflinks: false }), [
    { name: 'copies', status: 'ok', message: /has no reflinks/, advice: /XFS or Btrfs/ },
  ])
  t.same(checkCopies({ hasReflinks: null }), [])
  const checks = await diagnose(null)
  t.match(checks['new boxes'], { status: 'ok', message: /waits for the next box|No machine/ })
  t.match(checks.copies, { status: 'ok', message: /reflinks/ })
})

t.test('says how to add an engine where none is installed', (t) => {
  const checks = checkEngines({ engines: [], dockerStartLine: 'BOXWOOD_REGIONS=us-east-1=docker npm start' })
  t.match(checks, [
    {
      name: 'engines',
      status: 'ok',
      advice:
        /apt-get install docker\.io.*; then stop Boxwood and start it with:\nBOXWOOD_REGIONS=us-east-1=docker npm start$/,
    },
  ])
  t.end()
})

t.test('box is not on the PATH, or the PATH finds another program', async (t) => {
  const { box } = await diagnose(coordinator, { PATH: '/usr/bin:/bin' })
  t.match(box, { status: 'warn', message: /not on the PATH/, advice: /^Run `\S+box install`/ })
  const bin = createTempDir(t, 'other-box')
  writeFileSync(join(bin, 'box'), '', { mode: 0o755 })
  const { box: other } = await diagnose(coordinator, { PATH: `${bin}:/usr/bin:/bin` })
  t.match(other, { status: 'warn', message: `another program first: ${bin}/box` })
})

t.test('a coordinator on another machine: no checks of this machine', async (t) => {
  await coordinator.addBox('fig')
  coordinator.changeNext('GET /api/v1/me', (account) => {
    account.boxes[0].observedState = 'provision_failed'
  })
  coordinator.respondNext('GET /', 200, { name: 'boxwood', version: '9.9.9' })
  const checks = await diagnose(coordinator)
  t.notOk(checks.isolation)
  t.match(checks.boxes, { status: 'warn', message: 'fig (provision_failed)', advice: /box show/ })
  t.match(checks.version, { status: 'warn', advice: /9\.9\.9/ })
})

t.test('a rejected key, and a coordinator that does not respond', async (t) => {
  t.match((await diagnose(coordinator, { BOXWOOD_API_KEY: 'dcp_wrong' })).coordinator, {
    status: 'fail',
    advice: /key in BOXWOOD_API_KEY was rejected/,
  })
  t.match((await diagnose({ url: 'http://127.0.0.1:1', key: coordinator.key })).coordinator, {
    status: 'fail',
    advice: /connection refused/,
  })
})

t.test('packages that are missing, or older than package-lock.json', (t) => {
  const dir = createTempDir(t, 'packages')
  const write = (file: string, content: object) => writeFileSync(join(dir, file), JSON.stringify(content))
  write('package.json', { dependencies: { current: '1', outdated: '1', missing: '1' } })
  const versions = { current: '1.0.0', outdated: '1.2.0', missing: '1.0.0' }
  const packages = Object.entries(versions).map(([name, version]) => [`node_modules/${name}`, { version }])
  write('package-lock.json', { packages: Object.fromEntries(packages) })
  for (const name of ['current', 'outdated']) {
    mkdirSync(join(dir, 'node_modules', name), { recursive: true })
    write(`node_modules/${name}/package.json`, { version: '1.0.0' })
  }
  t.match(checkPackages(dir), {
    status: 'fail',
    message: 'missing or outdated: outdated, missing',
    advice: `Run \`npm ci\` in ${dir}.`,
  })
  t.end()
})

t.test('native parts that are not compiled', (t) => {
  const dir = createTempDir(t, 'native')
  const native = 'agent/exec/native'
  mkdirSync(join(dir, native), { recursive: true })
  for (const source of ['spawn.c', 'run.c', 'runner.h', 'confine.c', 'terminal.c'])
    cpSync(join(PROJECT_DIR, native, source), join(dir, native, source))
  t.match(checkNativeParts(dir), {
    status: 'warn',
    message: /^not compiled: spawner, runner, terminal host, confinement/,
    advice: /npm run build-native/,
  })
  t.end()
})
