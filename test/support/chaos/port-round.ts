// A program in a box takes the port of the coordinator between its end and its start. It must not receive a credential, and
// the next coordinator must listen on the port.
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { runBox } from '../../cli/run-box.ts'
import { createSeededRandom } from '../random.ts'
import { waitUntil } from '../wait-until.ts'
import type { FixedPortSetup } from './fixed-port-setup.ts'

/** Tries to listen every 2 ms, ignores SIGTERM, and appends what it receives to a file. */
const createImpostor = (port: number): string => `
  process.on('SIGTERM', () => {})
  const server = require("node:net").createServer((socket) => {
    socket.on("error", () => {})
    socket.on("data", (bytes) => require("node:fs").appendFileSync("received", bytes))
  })
  server.on("error", () => setTimeout(() => server.listen(${port}, "127.0.0.1"), 2))
  server.listen(${port}, "127.0.0.1")`

export async function runPortRound(t: Test, setup: FixedPortSetup, { seed }: { seed: number }) {
  const { coordinator, port, box, key, createBox } = setup
  const random = createSeededRandom(seed)
  const { id, hostname } = await createBox(`port-${seed}`)
  const hostNode = join(coordinator.dataDir, 'runtime/node')
  const script = createImpostor(port).replaceAll("'", '"')
  const command = `node=/run/boxwood/bin/node; [ -x $node ] || node=${hostNode}; exec $node -e '${script}'`
  const signals = random() < 0.5 ? (['SIGTERM', 'SIGKILL'] as const) : (['SIGKILL', 'SIGTERM'] as const)
  for (const signal of signals) {
    await coordinator.exec(hostname, command, { detached: true })
    await coordinator.kill(signal)
    await waitUntil('the box has taken the port', () => canConnect(port))
    // Without BOXWOOD_API_KEY: the command reads the URL and the key from the data directory.
    const listed = await runBox(null, ['ls'], { env: { BOXWOOD_DATA: coordinator.dataDir } })
    t.not(listed.code, 0, `box ls fails after ${signal}`)

    await coordinator.start()
    t.equal(Number(new URL(coordinator.url).port), port, `the coordinator listens after ${signal}`)
    t.match(await coordinator.exec(box.hostname, 'echo works'), { stdout: 'works\n' })
    await coordinator.waitForState(id, 'running')
    t.match(await coordinator.exec(hostname, 'echo works'), { stdout: 'works\n' })
    const path = join(coordinator.dataDir, 'boxes', id, 'home/received')
    const received = existsSync(path) ? readFileSync(path, 'latin1') : ''
    t.notOk(/authorization|bearer|bx[a-z]_/i.test(received) || received.includes(key), 'no credential')
  }
  await coordinator.sendJson('DELETE', `/api/v1/boxes/${id}`)
  await coordinator.waitForState(id, 'terminated')
}

const canConnect = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
