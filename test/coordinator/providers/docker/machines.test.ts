// Boxes of a real Docker engine: images of any C library, what continues through which change, and isolation.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Box } from '../../../../shared/api/boxes.ts'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { findDockerProblem, startDocker } from '../../../support/engines/docker.ts'
import { startEngineProxy } from '../../../support/engines/engine-proxy.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const GiB = 1024 ** 3
const LABELS = ['--filter', 'label=boxwood.coordinator']
const problem = findDockerProblem()

t.test('Docker', problem === undefined ? {} : { skip: problem }, async (t) => {
  const engine = await startDocker()
  if ('skip' in engine) {
    t.comment(`skipped: ${engine.skip}`)
    return
  }
  t.teardown(() => engine.close())
  const proxy = await startEngineProxy(engine)
  t.teardown(() => proxy.close())
  const { api, edge, waitForState } = await startTestCoordinator(t, {
    machines: 'local',
    env: {
      BOXWOOD_DOCKER_HOST: `unix://${proxy.socket}`,
      BOXWOOD_REGIONS: 'us-west-2=local,us-west-1=docker,us-east-1=docker',
    },
  })
  const docker = (...args: string[]) => engine.command(args).trim()
  const inspect = (box: Box, format: string) =>
    docker('container', 'inspect', '-f', format, `boxwood-${box.id}`)

  async function create(image: string): Promise<Box> {
    const { json } = await api('POST', '/boxes', { image, tier: 'nano' })
    return waitForState(json.box.id, 'running')
  }

  async function remove(box: Box): Promise<void> {
    await api('DELETE', `/boxes/${box.id}`)
    await waitForState(box.id, 'terminated')
  }

  async function exec({ hostname }: Box, command: string): Promise<string> {
    const { json } = await edge(hostname, 'POST', '/exec', { command })
    if (json.exitCode !== 0) throw new Error(JSON.stringify(json))
    return json.stdout.trim()
  }

  async function getDetail({ id }: Box) {
    const { json } = await api('GET', `/boxes/${id}`)
    return json
  }

  async function testImage(t: Test, image: string): Promise<void> {
    const box = await create(image)
    t.match(box, { image, isolation: { level: 'container', network: 'own' } })
    const user = 'id -u && pwd && echo "$HOME $(printenv LD_LIBRARY_PATH || echo unset)"'
    t.equal(await exec(box, user), '0\n/root\n/root unset')
    const { json } = await edge(box.hostname, 'POST', '/exec', { command: 'echo out', detach: true })
    await waitUntil('the detached command has exited', async () => {
      const { json: process } = await edge(box.hostname, 'GET', `/exec/${json.processId}`)
      return process.status !== 'running'
    })
    // Another process of the same Node reports it.
    await waitUntil('the agent reports its machine', async () => (await getDetail(box)).machine?.kernel)
    t.equal((await getDetail(box)).machine.cpuCount, 1)
    await remove(box)
  }

  await t.test('boxes run on glibc, on musl and without a C library', async (t) => {
    await Promise.all(['debian:12', 'musl', 'busybox'].map((image) => testImage(t, image)))
  })

  const [box, other] = await Promise.all([create('debian:12'), create('busybox')])
  await exec(box, 'echo kept >/kept; sleep 1000 & echo $! >pid')
  const isSleepRunning = async () => exec(box, 'kill -0 $(cat pid) && echo yes')

  await t.test('a box has no path to other boxes, the engine or the coordinator', async (t) => {
    const status = await exec(other, 'cat /proc/1/status')
    t.match(status, /^NoNewPrivs:\t1$/m)
    t.match(status, /^Seccomp:\t2$/m)
    t.match(status, /^CapEff:\t00000000a80425fb$/m, 'the default capabilities of Docker')
    const address = inspect(box, '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}')
    t.match(address, /^10\.213\./)
    t.equal(await exec(other, `ping -c 1 -W 1 ${address} >/dev/null 2>&1 || echo no`), 'no')
    t.equal(await exec(other, 'ls /opt/boxwood/coordinator'), 'agent.sock')
    t.equal(await exec(other, 'touch /opt/boxwood/agent/x 2>/dev/null || echo no'), 'no')
    t.equal(await exec(other, 'find / -xdev -name docker.sock -o -xdev -name boxwood.db'), '')
  })

  await t.test('processes continue after a suspend', async (t) => {
    await api('POST', `/boxes/${box.id}/suspend`)
    t.equal((await waitForState(box.id, 'suspended')).suspendedAs, 'frozen')
    t.equal(inspect(box, '{{.State.Paused}}'), 'true')
    await api('POST', `/boxes/${box.id}/wake`)
    await waitForState(box.id, 'running')
    t.equal(await isSleepRunning(), 'yes')
  })

  await t.test('processes continue through a resize', async (t) => {
    await api('POST', `/boxes/${box.id}/resize`, { target_tier: 'micro' })
    await waitUntil('the agent reports the new size', async () => {
      const { job, machine } = await getDetail(box)
      return job === null && machine?.cpuCount === 2
    })
    t.equal(inspect(box, '{{.HostConfig.Memory}}'), String(2 * GiB))
    t.equal(await isSleepRunning(), 'yes')
  })

  await t.test('a move to another region of the engine copies nothing', async (t) => {
    const containerId = inspect(box, '{{.Id}}')
    await api('POST', `/boxes/${box.id}/region`, { region: 'us-east-1' })
    await waitUntil('the box has moved', async () => {
      const { box: moved, job } = await getDetail(box)
      return moved.region === 'us-east-1' && moved.observedState === 'running' && job === null
    })
    t.equal(inspect(box, '{{.Id}}'), containerId)
    t.equal(await exec(box, 'cat /kept'), 'kept')
  })

  await t.test('a box whose container is killed starts again', async (t) => {
    docker('kill', `boxwood-${box.id}`)
    await waitUntil('the container runs', () => inspect(box, '{{.State.Running}}') === 'true')
    await waitForState(box.id, 'running')
    t.equal(await exec(box, 'cat /kept'), 'kept')
  })

  await t.test('a box whose container the engine cannot start gets another container', async (t) => {
    const containerId = inspect(box, '{{.Id}}')
    let failures = 0
    // A killed engine has left the task of a start.
    proxy.intercept(({ url }, response) => {
      if (failures > 0 || !url?.endsWith('/start')) return undefined
      failures++
      response.writeHead(500, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ message: `task ${containerId}: already exists: unknown` }))
      return 'answered'
    })
    docker('kill', `boxwood-${box.id}`)
    const listRunning = () => docker('ps', '-q', '--no-trunc', '--filter', `name=^boxwood-${box.id}$`)
    await waitUntil('another container runs', () => ![containerId, ''].includes(listRunning()))
    proxy.intercept(() => undefined)
    await waitForState(box.id, 'running')
    t.equal(await exec(box, 'cat /kept'), 'kept')
    t.equal(await exec(box, 'env | grep ^BOXWOOD_ | grep -vE "^BOXWOOD_(BOX|PROCESS_ID)=" || true'), '')
  })

  await t.test('a fork has the files of the whole box', async (t) => {
    await exec(box, 'echo home >home')
    const { json } = await api('POST', `/boxes/${box.id}/fork`, {})
    const fork = await waitForState(json.box.id, 'running')
    t.equal(await exec(fork, 'cat /kept home'), 'kept\nhome')
    await remove(fork)
  })

  await t.test('boxes run again after a restart of the engine', async (t) => {
    await engine.kill()
    await engine.start()
    // Docker ends the containers of an engine that was killed when the next one cannot adopt them.
    await waitUntil('both boxes run commands', async () => {
      const results = await Promise.allSettled([box, other].map((each) => exec(each, 'true')))
      return results.every(({ status }) => status === 'fulfilled')
    })
    t.equal(await exec(box, 'cat /kept'), 'kept')
  })

  await t.test('a box whose container was removed gets another one with its home', async (t) => {
    await exec(other, 'echo home >home')
    docker('rm', '-f', `boxwood-${other.id}`)
    await waitForState(other.id, 'degraded')
    await waitForState(other.id, 'running')
    t.equal(await exec(other, 'cat home'), 'home')
    t.match((await getDetail(other)).events[0], { reason: /its home is complete, other files are lost/ })
  })

  await t.test('an engine whose answers are lost has each box once', async (t) => {
    t.teardown(() => proxy.intercept(() => undefined))
    const lost = new Set<string>()
    // The first answer to the creation, the start and the removal of the container.
    const changes =
      /^(POST \/containers\/(create.*boxwood-|boxwood-.*\/start)|DELETE \/containers\/boxwood-)(?!helper)/
    proxy.intercept(({ method, url }) => {
      const call = `${method} ${url}`
      if (!changes.test(call) || lost.has(call)) return undefined
      lost.add(call)
      return 'lost'
    })
    const repeated = await create('busybox')
    t.ok([...lost].some((call) => call.startsWith('POST /containers/create?')))
    t.equal(docker('ps', '-aq', '--filter', `label=boxwood.box=${repeated.id}`).split('\n').length, 1)
    t.equal(await exec(repeated, 'id -u'), '0')
    await remove(repeated)
  })

  await t.test('an image without a shell is refused', async (t) => {
    // An empty archive.
    writeFileSync(join(engine.dir, 'empty.tar'), Buffer.alloc(1024))
    docker('import', join(engine.dir, 'empty.tar'), 'without-shell:1')
    const { json } = await api('POST', '/boxes', { image: 'without-shell:1', tier: 'nano' })
    const failed = await waitForState(json.box.id, 'provision_failed')
    t.match((await getDetail(failed)).events, [{ reason: /no \/bin\/sh/ }])
    await remove(failed)
  })

  await t.test('deleted boxes leave nothing', async (t) => {
    await Promise.all([remove(box), remove(other)])
    t.equal(docker('images', '-q', ...LABELS), '')
    t.equal(docker('ps', '-aq', ...LABELS), '')
    t.equal(docker('network', 'ls', '-q', ...LABELS), '')
    t.match(docker('volume', 'ls', '-q', ...LABELS), /^boxwood-agent-\w+$/)
  })
})
