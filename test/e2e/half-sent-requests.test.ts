// More half-sent requests than the coordinator accepts connections, from other addresses and from a box: the owner and the
// agents of other boxes are not kept out.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { findAgentPid } from '../support/find-agent-process.ts'
import { sendHalfRequests } from '../support/half-sent-requests.ts'
import { availableLevels } from '../support/isolation-levels.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { waitUntil } from '../support/wait-until.ts'

const MAX_CONNECTIONS = 64
const HALF_SENT = 2 * MAX_CONNECTIONS

for (const { level, skip } of await availableLevels()) {
  t.test(`at level ${level}`, { skip }, async (t) => {
    const coordinator = await startCoordinatorProcess(t, {
      ...limitsEnv({ maxConnections: MAX_CONNECTIONS }),
      BOXWOOD_LOCAL_ISOLATION: level,
      BOXWOOD_LOCAL_NETWORK: 'host',
    })
    const attacker = await coordinator.waitForFirstBox()
    const { box: victim } = await coordinator.sendJson('POST', '/api/v1/boxes', { name: 'victim' })
    await coordinator.waitForState(victim.id, 'running')

    for (const localAddress of ['127.0.0.1', '127.0.0.2', '127.0.0.3']) {
      const flood = await sendHalfRequests(coordinator.url, HALF_SENT, { localAddress })
      t.teardown(flood.close)
    }
    t.match(
      await coordinator.exec(attacker.hostname, 'echo works'),
      { stdout: 'works\n' },
      'the owner gets in',
    )

    const url = readFileSync(join(coordinator.dataDir, 'boxes', attacker.id, 'state/url'), 'utf8')
    const script = `
      let open = 0
      for (let i = 0; i < ${HALF_SENT}; i += 1) {
        const socket = require('node:net').connect(process.argv[1])
        socket.on('error', () => {})
        socket.once('connect', () => {
          socket.write('GET / HTTP/1.1\\r\\nhost: ')
          open += 1
          if (open === ${HALF_SENT}) console.log('flooded')
        })
        socket.once('close', () => {})
      }
      setTimeout(() => {}, 600_000)`
    const node = level === 'process' ? join(coordinator.dataDir, 'runtime/node') : '/run/boxwood/bin/node'
    const flood = await coordinator.exec(
      attacker.hostname,
      `${node} -e "$SCRIPT" ${url.replace('unix:', '')} > flood.log`,
      { detached: true, env: { SCRIPT: script } },
    )
    t.ok(flood.processId)
    await waitUntil('the connections are open', async () => {
      const { stdout } = await coordinator.exec(attacker.hostname, 'cat flood.log')
      return stdout.includes('flooded')
    })
    const pid = await waitUntil('the agent runs', async () => findAgentPid(victim.id))
    process.kill(pid, 'SIGKILL')
    // A request may still use the tunnel of the killed agent.
    const isConnected = await waitUntil('another agent gets in', async () => {
      const { stdout } = await coordinator.exec('victim', 'echo works')
      return stdout === 'works\n'
    })
    t.ok(isConnected)
  })
}
