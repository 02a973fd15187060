// A box that shares the network of its host: only the ports of its processes can be reached, at every isolation level.

import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { TcpOverWebSocket } from '../../shared/tcp-over-websocket.ts'
import { availableLevels } from '../support/isolation-levels.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { connectToPort, startPortServer } from '../support/port-client.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'

for (const { level, skip } of await availableLevels())
  t.test(`at level ${level}`, { skip }, async (t) => {
    const coordinator = await startCoordinatorWithBox(t, {
      env: { ...limitsEnv(HIGH_EDGE_LIMITS), BOXWOOD_LOCAL_ISOLATION: level, BOXWOOD_LOCAL_NETWORK: 'host' },
    })
    const { url, key, box } = coordinator
    const connect = (port: number) => connectToPort(t, { url, key, name: box.hostname, port })

    const foreign = createServer(() => t.fail('a server of the host got a connection')).listen(0, '127.0.0.1')
    t.teardown(() => foreign.close())
    await once(foreign, 'listening')
    const { port } = foreign.address() as AddressInfo
    t.match((await connect(port)).refusal, { status: 404, code: 'not_found' })

    const { ws, refusal } = await connect(await startPortServer(t, coordinator))
    t.equal(refusal, null)
    const connection = new TcpOverWebSocket(ws)
    connection.end('request')
    t.equal(await text(connection), 'hello REQUEST')
  })
