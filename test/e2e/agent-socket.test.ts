// The agents of local boxes connect to the socket in the data directory, at every isolation level and with every network: a
// program that takes the port of a killed coordinator gets no connection.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { ISOLATION_LEVELS } from '../../shared/api/boxes.ts'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { isInstalled } from '../support/is-installed.ts'

for (const level of ISOLATION_LEVELS) {
  const skip = level === 'bubblewrap' && !isInstalled('bwrap') ? 'bwrap is not installed' : false
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
}
