// The engines of a machine, what an operator reads about them, and the line that adds one. The engines are servers of the test.
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import {
  type DescribeOptions,
  describeEngine,
  formatEngines,
} from '../../../coordinator/providers/describe-engines.ts'
import { listOccupiedRegions } from '../../../coordinator/providers/local/region-directories.ts'
import { type EngineReport, probeEngines } from '../../../coordinator/providers/probe-engines.ts'
import { loadConfig } from '../../../coordinator/server/config.ts'
import { createTempDir } from '../../support/temp-dir.ts'

const DOCKER = {
  ServerVersion: '28.2.2',
  Driver: 'overlay2',
  CgroupVersion: '2',
  CgroupDriver: 'systemd',
  SecurityOptions: ['name=seccomp,profile=default'],
  MemoryLimit: true,
  CpuCfsQuota: true,
}

const INCUS = {
  metadata: {
    auth: 'trusted',
    environment: { server_version: '6.0.4', storage: 'btrfs', server_clustered: true },
  },
}

async function serve(t: Test, path: string, handle: RequestListener) {
  mkdirSync(dirname(path), { recursive: true })
  const server = createServer(handle).listen(path)
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
}

const answer =
  (body: unknown, headers: IncomingHttpHeaders = {}): RequestListener =>
  (_, response) =>
    response.writeHead(200, headers as Record<string, string>).end(JSON.stringify(body))

/** No socket of the machine of the test is used: the variables name all engines. */
function createProbe(t: Test, variables: Record<string, string> = {}) {
  const dir = createTempDir(t, 'engines')
  const env = { DOCKER_HOST: `unix://${dir}/d`, CONTAINER_HOST: `unix://${dir}/p`, INCUS_SOCKET: `${dir}/i` }
  return {
    dir,
    probe: (options: { timeoutMs?: number; env?: Record<string, string> } = {}) =>
      probeEngines({ config: loadConfig(variables), env, home: dir, ...options }),
  }
}

t.test('reports the version and the abilities of each engine', async (t) => {
  const { dir, probe } = createProbe(t)
  await serve(t, join(dir, 'd'), answer({ ...DOCKER, SecurityOptions: ['name=userns'] }))
  await serve(
    t,
    join(dir, 'p'),
    answer({ ...DOCKER, CgroupVersion: '1', Rootless: true }, { server: 'Libpod/4' }),
  )
  await serve(t, join(dir, 'i'), answer(INCUS))
  t.match(await probe(), [
    {
      kind: 'docker',
      source: 'DOCKER_HOST',
      status: 'running',
      version: '28.2.2',
      facts: ['rootful with userns-remap', 'cgroup v2', 'overlay2'],
      canFreeze: true,
      canResizeLive: true,
    },
    { kind: 'podman', facts: ['rootless', 'cgroup v1', 'overlay2'], canFreeze: false, canResizeLive: false },
    { kind: 'incus', version: '6.0.4', facts: ['cluster', 'btrfs'], canFreeze: true },
  ])
})

t.test('never fails, and never waits longer than the time limit', async (t) => {
  const { dir, probe } = createProbe(t)
  await serve(t, join(dir, 'd'), () => undefined)
  await serve(t, join(dir, 'p'), (_, response) => response.writeHead(500).end('no JSON'))
  await serve(t, join(dir, 'i'), answer({ metadata: { auth: 'untrusted' } }))
  t.match(await probe({ timeoutMs: 100 }), [
    { kind: 'docker', status: 'failed', problem: 'does not answer in time' },
    { kind: 'podman', status: 'failed', problem: /^does not work: / },
    { kind: 'incus', status: 'denied' },
  ])
  t.match(await probe({ env: { DOCKER_HOST: 'ssh://host' } }), [
    { kind: 'docker', address: '', status: 'failed', problem: /ssh -N -L/ },
  ])
})

t.test('reports an engine that a variable names and that does not run', async (t) => {
  const { probe } = createProbe(t)
  t.match(await probe(), [
    { kind: 'docker', source: 'DOCKER_HOST', status: 'missing', problem: 'does not run' },
    { kind: 'podman', source: 'CONTAINER_HOST', status: 'missing' },
    { kind: 'incus', source: 'INCUS_SOCKET', status: 'missing' },
  ])
})

t.test('a usual socket of Docker that Podman serves is not Docker', async (t) => {
  const runtimeDir = createTempDir(t, 'runtime')
  await serve(t, join(runtimeDir, 'docker.sock'), answer(DOCKER, { server: 'Libpod/4.3.1 (linux)' }))
  const reports = await probeEngines({
    config: loadConfig({}),
    env: { XDG_RUNTIME_DIR: runtimeDir },
    home: runtimeDir,
  })
  t.notOk(reports.some(({ address }) => address === `unix://${runtimeDir}/docker.sock`))
})

const RUNNING: EngineReport = {
  kind: 'docker',
  address: 'unix:///var/run/docker.sock',
  source: null,
  status: 'running',
  version: '28.2.2',
  facts: ['rootful', 'cgroup v2'],
  canFreeze: true,
  canResizeLive: true,
}

const createOptions = (
  regions: string | undefined,
  occupiedRegions: DescribeOptions['occupiedRegions'] = [],
): DescribeOptions => ({
  regions: loadConfig(regions === undefined ? {} : { BOXWOOD_REGIONS: regions }).regions,
  occupiedRegions,
  startCommand: 'npm start',
})

t.test('the line that adds an engine keeps the regions and the default', async (t) => {
  const line = (...options: Parameters<typeof createOptions>) =>
    describeEngine(RUNNING, createOptions(...options)).startLine
  t.equal(line(undefined), 'BOXWOOD_REGIONS=us-west-2=local,us-east-1=docker npm start')
  t.equal(
    line(undefined, ['us-west-2', 'us-east-1']),
    'BOXWOOD_REGIONS=us-west-2=local,us-east-1=local,us-west-1=docker npm start',
    'regions with boxes are kept',
  )
  t.equal(
    line('us-east-1=local,us-west-1=incus/@fast'),
    'BOXWOOD_REGIONS=us-east-1=local,us-west-1=incus/@fast,us-east-2=docker npm start',
    'us-west-2 would become the default',
  )
  t.equal(line(undefined, ['us-west-1', 'us-east-1', 'us-east-2', 'eu-central-1']), null)
})

t.test('the start message offers engines, and warns of configured ones that fail', async (t) => {
  const podman: EngineReport = {
    kind: 'podman',
    address: 'unix:///run/podman/podman.sock',
    source: null,
    status: 'missing',
    problem: 'does not run',
  }
  t.equal(
    formatEngines([RUNNING, podman], createOptions(undefined)),
    `Found Docker 28.2.2 (rootful, cgroup v2): boxes with root and images, freeze, live resize. To add it, stop Boxwood and start it with:
  BOXWOOD_REGIONS=us-west-2=local,us-east-1=docker npm start`,
  )
  t.match(
    formatEngines([RUNNING, podman], createOptions('us-west-2=docker,us-east-2=podman')),
    /^Podman: does not run \(unix:.*podman\.sock\)\. Start its socket with `systemctl /,
  )
  t.equal(formatEngines([RUNNING], createOptions('us-west-2=docker')), '')
  t.match(
    describeEngine(podman, createOptions(undefined)).advice,
    /podman\.socket`, then stop Boxwood and start it with: BOXWOOD_REGIONS=us-west-2=local,us-east-2=podman npm start$/,
  )
})

t.test('a region is occupied by boxes and by snapshots, not by its directory', async (t) => {
  const dataDir = createTempDir(t, 'regions')
  for (const dir of [
    'boxes/a-box',
    'regions/us-east-1/boxes',
    'regions/us-east-2/archives/ws_1/archives/snp_1',
    'regions/eu-central-1/archives/ws_1/archives',
  ])
    mkdirSync(join(dataDir, dir), { recursive: true })
  t.same(listOccupiedRegions(dataDir), ['us-west-2', 'us-east-2'])
})
