// A box with its own network: its outbound connections continue after a freeze.
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import t from 'tap'
import { probeCgroups } from '../../../../coordinator/providers/local/cgroups.ts'
import { findOwnNetworkProblem } from '../../../support/isolation-levels.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from './each-level.ts'
import { startBox, waitForFileText } from './support.ts'

const external = Object.values(networkInterfaces())
  .flat()
  .find((address) => address?.family === 'IPv4' && !address.internal)?.address

async function findSkipReason(): Promise<string | false> {
  if (!(await probeCgroups()).canFreeze) return 'this user has no cgroup freezer'
  return external === undefined ? 'the machine has only a loopback address' : findOwnNetworkProblem()
}

/** Keeps one connection, and opens a second one for each file `connect`. */
const buildEchoClient = (host: string, port: number) => `
cat >"$HOME/client.mjs" <<'END'
import { createConnection } from 'node:net'
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
const state = { pid: process.pid, echoes: 0, closes: 0, connections: 0 }
const connect = () => createConnection(${JSON.stringify({ host, port })}).on('error', () => undefined)
const socket = connect().on('data', () => state.echoes++).on('close', () => state.closes++)
setInterval(() => {
  socket.write('x')
  if (existsSync('connect')) {
    rmSync('connect')
    connect().once('data', function () { state.connections++; this.destroy() }).write('x')
  }
  writeFileSync('state.new', JSON.stringify(state))
  renameSync('state.new', 'state')
}, 20)
END
/run/boxwood/bin/node "$HOME/client.mjs" &`

const skip = await findSkipReason()
if (skip !== false) t.test('outbound connections continue after a freeze', { skip }, () => undefined)
else
  testEachLevel(
    'outbound connections continue after a freeze',
    async (test, level) => {
      const server = createServer((socket) => {
        socket.on('error', () => undefined)
        socket.pipe(socket)
      }).listen(0, external)
      await once(server, 'listening')
      test.teardown(() => server.close())
      const { port } = server.address() as { port: number }
      const script = buildEchoClient(external ?? '', port)
      const { provider, spec, inHome } = await startBox(test, { level, network: 'own', script })
      const readState = async () =>
        JSON.parse(await readFile(inHome('state'), 'utf8')) as Record<
          'echoes' | 'closes' | 'connections',
          number
        >
      await waitForFileText(inHome('state'))
      await waitUntil('the connection is open', async () => (await readState()).echoes > 0)
      test.equal(await provider.freeze(spec.boxId), true)
      const { echoes } = await readState()
      await provider.start(spec)
      await waitUntil('the connection continues', async () => (await readState()).echoes > echoes + 5)
      test.equal((await readState()).closes, 0)
      await writeFile(inHome('connect'), '')
      await waitUntil('a new connection is opened', async () => (await readState()).connections === 1)
      await provider.stop(spec.boxId)
    },
    ['bubblewrap', 'namespaces'],
  )
