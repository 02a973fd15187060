// A box with its own network: outbound connections work, and the loopback and link-local addresses of the host do not.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { describeIsolation } from '../../../../coordinator/providers/local/describe-isolation.ts'
import {
  CHECK_OWN_NETWORK,
  DEFINE_FAIL,
  type Level,
} from '../../../../coordinator/providers/local/levels/choose-level.ts'
import { hasEnvironmentEntry, listPids, readArgv } from '../../../../coordinator/providers/parts/proc.ts'
import { findOwnNetworkProblem } from '../../../support/isolation-levels.ts'
import { DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from './each-level.ts'
import { createDataDir, openProvider, startBox, waitForFileText } from './support.ts'

const skip = findOwnNetworkProblem()
const LEVELS = ['bubblewrap', 'namespaces'] as const

/** Runs the test at each level at which boxes have their own network. */
function testOwnNetwork(name: string, body: (test: Test, level: Level) => Promise<void>): void {
  if (skip === false) testEachLevel(name, body, LEVELS)
  else t.test(name, { skip }, () => undefined)
}

/** Counts connections to a port of an address of this machine. */
async function startListener(test: Test, host: string, port = 0) {
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    socket.on('error', () => undefined)
    socket.end('hello')
  }).listen(port, host)
  await once(server, 'listening')
  test.teardown(() => server.close())
  return { port: (server.address() as { port: number }).port, countConnections: () => connections }
}

/** Targets that must fail may drop every packet. */
const BLOCKED_MS = 3000
/** The network of the box may still be starting. Shorter than the deadline for all results. */
const CONNECT_MS = DEADLINE_MS / 2

type Target = [host: string, port: number, timeoutMs: number]

/** A script that connects to each address and prints `name=connected` or `name=failed`. */
const buildConnectScript = (targets: Record<string, Target>) => `
cat >"$HOME/connect.mjs" <<'END'
import { createConnection } from 'node:net'
for (const [name, [host, port, timeout]] of Object.entries(${JSON.stringify(targets)})) {
  const result = await new Promise((resolve) => {
    const socket = createConnection({ host, port, timeout })
    socket.on('data', () => resolve('connected'))
    socket.on('error', () => resolve('failed'))
    socket.on('close', () => resolve('failed'))
    socket.on('timeout', () => resolve('failed'))
  })
  console.log(name + '=' + result)
}
process.exit()
END
{
  /run/boxwood/bin/node "$HOME/connect.mjs"
  echo "interfaces=$(cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' \\n')"
  echo "dns=$(grep nameserver /etc/resolv.conf)"
} >"$HOME/out"
mv "$HOME/out" "$HOME/results"`

const listProcesses = (boxId: string, program: string): number[] =>
  listPids().filter((pid) => readArgv(pid)[0] === program && hasEnvironmentEntry(pid, `BOXWOOD_BOX=${boxId}`))

testOwnNetwork('connects to other machines, and not to localhost of the host', async (test, level) => {
  const loopback = await startListener(test, '127.0.0.1')
  const external = Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.family === 'IPv4' && !address.internal)?.address
  const outbound = external === undefined ? null : await startListener(test, external)
  const script = buildConnectScript({
    loopback: ['127.0.0.1', loopback.port, BLOCKED_MS],
    gateway: ['10.0.2.2', loopback.port, BLOCKED_MS],
    metadata: ['169.254.169.254', 80, BLOCKED_MS],
    ...(external === undefined || outbound === null
      ? {}
      : { outbound: [external, outbound.port, CONNECT_MS] }),
  })
  const box = await startBox(test, { level, network: 'own', script })
  test.match(box.isolation, { level, network: 'own' })
  const lines = (await waitForFileText(box.inHome('results'))).trim().split('\n')
  test.match(Object.fromEntries(lines.map((line) => line.split('='))), {
    loopback: 'failed',
    gateway: 'failed',
    metadata: 'failed',
    ...(outbound === null ? {} : { outbound: 'connected' }),
    interfaces: 'lotap0',
    dns: 'nameserver 10.0.2.3',
  })
  test.equal(loopback.countConnections(), 0)
  test.equal(outbound?.countConnections() ?? 1, 1)
})

testOwnNetwork(
  'stops the network with the box, which can restart in that of the host',
  async (test, level) => {
    const dataDir = await createDataDir(test)
    const script =
      'cp /etc/resolv.conf "$HOME/out"; mv "$HOME/out" "$HOME/resolv-$(cut -d: -f1 /proc/net/dev | grep -c tap0)"'
    const { provider, spec, inHome } = await startBox(test, { level, network: 'own', dataDir, script })
    test.equal(listProcesses(spec.boxId, 'slirp4netns').length, 1)
    test.match(await waitForFileText(inHome('resolv-1')), /nameserver 10\.0\.2\.3/)
    await provider.stop(spec.boxId)
    await waitUntil('slirp4netns has exited', () => listProcesses(spec.boxId, 'slirp4netns').length === 0)

    const next = await openProvider(dataDir, { level, network: 'host', script })
    test.teardown(() => next.stop(spec.boxId))
    test.match(await next.start(spec), { isolation: { network: 'host' } })
    test.notMatch(await waitForFileText(inHome('resolv-0')), /nameserver 10\.0\.2\.3/)
    test.same(listProcesses(spec.boxId, 'slirp4netns'), [])
  },
)

testOwnNetwork('the agent does not get the descriptor that keeps the network', async (test, level) => {
  const script = '(cd /proc/self/fd && echo *) >"$HOME/out"; mv "$HOME/out" "$HOME/descriptors"'
  const { inHome } = await startBox(test, { level, network: 'own', script })
  // The shell opens the directory as the last descriptor.
  test.equal(await waitForFileText(inHome('descriptors')), '0 1 2 3\n')
})

testOwnNetwork('the agent uses the socket, also when the machine file is damaged', async (test, level) => {
  const dataDir = await createDataDir(test)
  const socketDir = join(dataDir, 'agent-socket')
  await mkdir(socketDir)
  const options = { level, network: 'own', socketDir } as const
  const { paths } = await startBox(test, { ...options, dataDir })
  const url = 'unix:/run/boxwood/coordinator/agent.sock'
  test.equal(await readFile(join(paths.state, 'url'), 'utf8'), url)
  await writeFile(paths.machine, '')
  const next = await openProvider(dataDir, options)
  test.teardown(() => next.close())
  test.equal(await readFile(join(paths.state, 'url'), 'utf8'), url)
})

t.test('the probe names the property of the network that is missing', { skip }, async (test) => {
  const probe = spawnSync(
    'sh',
    ['-c', `${DEFINE_FAIL}\n${CHECK_OWN_NETWORK}`, 'sh', '', '', '', '', '', 'net:[0]'],
    {
      encoding: 'utf8',
    },
  )
  test.match(probe, { status: 1, stderr: 'the network of the box has no default route\n' })
})

t.test('rejects the network setting own at level process', async (test) => {
  const dataDir = await createDataDir(test)
  await test.rejects(openProvider(dataDir, { level: 'process', network: 'own' }), {
    message: /network of its own needs level bubblewrap or namespaces .*BOXWOOD_LOCAL_NETWORK=own/,
  })
})

t.test('uses the network of the host where boxes cannot have their own', async (test) => {
  const { isolation, provider } = await startBox(test, { level: 'process', network: 'auto' })
  test.match(isolation, { network: 'host' })
  test.match(provider.describe(), /Boxes share the network of this machine, including localhost\./)
  test.match(provider.describe(), /Boxes do not have their own network: /)
})

t.test('the startup banner describes the network and the requirements of the setting own', async (test) => {
  const choice = { level: 'bubblewrap' as const, unavailable: [], confinement: 'native' as const }
  const describe = (network: 'own' | 'host', networkProblem: string | null) =>
    describeIsolation({ ...choice, network, networkProblem }, { controllers: [], canFreeze: true }, false)
  test.match(describe('own', null), /Each box has its own network, and cannot connect to localhost/)
  test.notMatch(describe('own', null), /share the network/)
  test.match(describe('host', null), /including localhost\.$/)
  test.match(
    describe('host', 'ip is not installed'),
    /install ip \(Debian, Ubuntu: apt-get install iproute2\)/,
  )
  test.match(describe('host', 'slirp4netns is not installed'), /apt-get install slirp4netns/)
})
