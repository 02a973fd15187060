// The agents of local boxes connect to the socket in the data directory, at every isolation level and with every network: a
// program that takes the port of a killed coordinator gets no connection. A box that has taken the port is stopped.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { availableLevels } from '../support/isolation-levels.ts'
import { waitUntil } from '../support/wait-until.ts'

for (const { level, skip } of await availableLevels()) {
  t.test(`at level ${level} with the network of the host`, { skip }, async (t) => {
    const coordinator = await startCoordinatorProcess(t, {
      BOXWOOD_LOCAL_ISOLATION: level,
      BOXWOOD_LOCAL_NETWORK: 'host',
    })
    const { id, hostname } = await coordinator.waitForFirstBox()
    const path = join(coordinator.dataDir, 'boxes', id, 'state/url')
    t.match(readFileSync(path, 'utf8'), /^unix:\/.*\/agent\.sock$/)
    const { port } = new URL(coordinator.url)
    await coordinator.kill('SIGKILL')

    let connections = 0
    const impostor = createServer((socket) => {
      connections++
      socket.destroy()
    })
    t.teardown(() => impostor.close())
    impostor.listen(Number(port), '127.0.0.1')
    await once(impostor, 'listening')
    await coordinator.start()
    t.match(await coordinator.exec(hostname, 'echo works'), { stdout: 'works\n' })
    t.equal(connections, 0)
  })

  const name = `a box at level ${level} that has taken the port is stopped, and the coordinator listens`
  t.test(name, { skip }, async (t) => {
    const env: Record<string, string> = { BOXWOOD_LOCAL_ISOLATION: level, BOXWOOD_LOCAL_NETWORK: 'host' }
    const coordinator = await startCoordinatorProcess(t, env)
    const { id, hostname } = await coordinator.waitForFirstBox()
    const { host, port } = new URL(coordinator.url)
    // Tries to listen until the coordinator has been killed. Also ignores SIGTERM.
    const script = `
      process.on('SIGTERM', () => {})
      const server = require('node:net').createServer()
      server.on('error', () => setTimeout(() => server.listen(${port}, '127.0.0.1'), 2))
      server.listen(${port}, '127.0.0.1')`
    const node = level === 'process' ? join(coordinator.dataDir, 'runtime/node') : '/run/boxwood/bin/node'
    const { processId } = await coordinator.exec(hostname, `${node} -e '${script.replaceAll("'", '"')}'`, {
      detached: true,
    })
    t.ok(processId)
    await coordinator.kill('SIGKILL')
    await waitUntil('the box has taken the port', () => canConnect(Number(port)))
    env.BOXWOOD_LISTEN = host
    await coordinator.start()
    t.equal(new URL(coordinator.url).host, host)
    await coordinator.waitForState(id, 'running')
    t.match(await coordinator.exec(hostname, 'echo works'), { stdout: 'works\n' })
  })
}

const canConnect = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
