// Another server takes the address of the coordinator while the coordinator is down.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { joinMachine, startUpgradableCoordinator } from '../../support/joined-machine.ts'
import { PROJECT_DIR } from '../../support/project.ts'
import { startTunnelServer } from '../../support/tunnel.ts'
import { waitUntil } from '../../support/wait-until.ts'

t.test('a machine runs no command of a server without the key of its coordinator', async (t) => {
  const coordinator = await startUpgradableCoordinator(t, PROJECT_DIR)
  const machine = await joinMachine(t, coordinator)
  await coordinator.kill('SIGKILL')
  const impostor = await startTunnelServer({ authenticate: async () => 'ws_1' })
  t.teardown(() => impostor.close())
  const connected: string[] = []
  impostor.tunnels.on('connected', ({ boxId }) => connected.push(boxId))
  coordinator.redirectAgents(impostor.port)
  const connectionFile = join(machine.prefix, 'state/connection.json')
  await waitUntil('the agent has refused the server', () =>
    /did not prove/.test(readFileSync(connectionFile, 'utf8')),
  )
  t.notOk(connected.includes(machine.boxId))
  await coordinator.startFrom()
  await coordinator.waitForState(machine.boxId, 'running')
  t.match(await machine.exec('echo works'), { stdout: 'works\n' })
})
