// The records of commands whose reports the agent could not send before its box was deleted.
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { killIfAlive } from '../agent/exec/detached/support.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { findAgentPid, listBoxPids } from '../support/find-agent-process.ts'
import { startTunnelProxy } from '../support/tunnel-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'

const FAULTS: Readonly<Record<string, (boxId: string) => void>> = {
  'the agent hangs': (boxId) => process.kill(findAgentPid(boxId) ?? 0, 'SIGSTOP'),
  'the machine stops': (boxId) => {
    for (const pid of listBoxPids(boxId)) killIfAlive(pid)
  },
}

t.test('are complete after the deletion', async (t) => {
  const target = { port: 0 }
  const proxy = await startTunnelProxy(() => target.port)
  const coordinator = await startTestCoordinator(t, {
    machines: 'local',
    env: { BOXWOOD_AGENT_URL: proxy.url },
  })
  // Runs after the coordinator's own teardown, which needs a connection to the boxes.
  t.teardown(() => proxy.close())
  const { api, edge, dataDir, waitForState } = coordinator
  target.port = Number(new URL(coordinator.url).port)

  const startCommand = async () => {
    const { json } = await api('POST', '/boxes', {})
    const { id } = await waitForState(json.box.id, 'running')
    const command = 'while [ ! -e finish ]; do sleep 0.05; done; echo final output; exit 7'
    const started = await edge(id, 'POST', '/exec', { command, detached: true })
    return { id, path: `/boxes/${id}/commands/${started.json.processId}` }
  }
  const boxes = await Promise.all(Object.values(FAULTS).map(startCommand))
  for (const { path } of boxes)
    await waitUntil('the start is recorded', async () => (await api('GET', path)).status === 200)

  proxy.blackhole()
  for (const [index, [name, inject]] of Object.entries(FAULTS).entries()) {
    const { id = '' } = boxes[index] ?? {}
    const boxDir = join(dataDir, 'boxes', id)
    writeFileSync(join(boxDir, 'home/finish'), '')
    await waitUntil(`the exit is on the disk before ${name}`, () =>
      globSync(`${boxDir}/state/reports/*.ndjson`).some((path) =>
        readFileSync(path, 'utf8').includes('"command.finished"'),
      ),
    )
    inject(id)
  }
  await Promise.all(
    boxes.map(async ({ id }) => {
      t.match(await api('DELETE', `/boxes/${id}`), { status: 202 })
      await waitForState(id, 'terminated')
    }),
  )
  for (const [index, name] of Object.keys(FAULTS).entries()) {
    const { path = '' } = boxes[index] ?? {}
    t.match((await api('GET', path)).json, { command: { status: 'exited', exitCode: 7 } }, name)
    t.match((await api('GET', `${path}/output`)).json, { data: 'final output\n', done: true }, name)
  }
})
