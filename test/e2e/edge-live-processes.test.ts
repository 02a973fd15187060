// The processes and the listening ports of a real box, over HTTP.

import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import t, { type Test } from 'tap'
import type { LiveProcess } from '../../shared/api/live-processes.ts'
import type { ListeningPort } from '../../shared/api/process-snapshots.ts'
import { availableLevels } from '../support/isolation-levels.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { waitUntil } from '../support/wait-until.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'

const SERVER = `
  const server = require('node:net').createServer().listen(0, '127.0.0.1', () => {
    console.log(server.address().port)
    const until = Date.now() + 60000
    const work = () => { for (const end = Date.now() + 50; Date.now() < end;); if (Date.now() < until) setTimeout(work, 100) }
    work()
  })
`

/** In boxes that have their own view of the file system. */
const BOX_NODE = '/run/boxwood/bin/node'

for (const { level, skip } of await availableLevels())
  t.test(
    `shows what a command uses, and on which port it listens, at level ${level}`,
    { skip },
    async (t) => {
      const { api, box, boxRequest } = await startCoordinatorWithBox(t, {
        env: { ...limitsEnv(HIGH_EDGE_LIMITS), BOXWOOD_LOCAL_ISOLATION: level },
      })
      const { port: hostPort } = await startHostServer(t)

      const { json: exec } = await boxRequest('POST', '/exec', {
        command: `node=${BOX_NODE}; [ -x "$node" ] || node='${process.execPath}'; exec "$node" -e "$CODE"`,
        env: { CODE: SERVER },
        detached: true,
      })
      const { processId, pid } = exec
      const port = await waitUntil('the server listens', async () =>
        Number((await boxRequest('GET', `/exec/${processId}`)).json.stdout),
      )

      const { status, json } = await boxRequest('GET', '/processes')
      t.equal(status, 200)
      t.match(json, { ok: true, type: 'process.list', total: json.processes.length })
      const server: LiveProcess = json.processes.find((process: LiveProcess) => process.pid === pid)
      t.match(server, { processId, state: /^[A-Z]$/, command: /-e/ })
      t.ok(server.memBytes > 10_000_000)
      await waitUntil('the server has CPU usage', async () => {
        const { json } = await boxRequest('GET', '/processes')
        return json.processes.find((process: LiveProcess) => process.pid === pid).cpuPct > 0
      })
      const isHost = ({ command }: LiveProcess) => command.includes('edge-live-processes.test')
      t.notOk(json.processes.some(isHost), "processes of the host are not the box's")

      const { json: own } = await boxRequest('GET', `/processes?processId=${processId}`)
      t.match(own, { total: 1, processes: [{ pid, processId }] })

      const findPort = async (wanted: number) => {
        const { json } = await api('GET', `/boxes/${box.id}/port-shares`)
        return json.listening?.ports.find((listening: ListeningPort) => listening.port === wanted)
      }
      const listening = await waitUntil('the port is reported', () => findPort(port))
      t.strictSame(listening, { port, pid, process: server.name })
      t.equal(await findPort(hostPort), undefined, "ports of the host are not the box's")
      await boxRequest('DELETE', `/exec/${processId}`)
      await waitUntil('the port is not reported any more', async () => (await findPort(port)) === undefined)
      await waitUntil('the process is not listed any more', async () => {
        const { json } = await boxRequest('GET', `/processes?processId=${processId}`)
        return json.total === 0
      })
    },
  )

async function startHostServer(t: Test): Promise<AddressInfo> {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  return server.address() as AddressInfo
}
