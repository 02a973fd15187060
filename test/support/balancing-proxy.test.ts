// The load-balancing proxy of the rounds: coordinators that are not ready get no connections.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { startBalancingProxy } from './balancing-proxy.ts'
import { waitUntil } from './wait-until.ts'

t.test('connections go to coordinators that listen and are ready', async (t) => {
  const proxy = await startBalancingProxy()
  t.teardown(proxy.close)
  const servers = await Promise.all(
    ['a', 'b'].map(async (name) => {
      const state = { isReady: true }
      const server = createServer((request, response) => {
        const status = request.url === '/readyz' && !state.isReady ? 503 : 200
        response.writeHead(status, { connection: 'close' }).end(name)
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      t.teardown(() => server.close())
      return { state, server, port: (server.address() as AddressInfo).port }
    }),
  )
  const [first, second] = servers
  proxy.targets.push(...servers.map(({ port }) => port))
  const readNames = async () => {
    const names = []
    for (let number = 0; number < 4; number++) names.push(await (await fetch(proxy.url)).text())
    return [...new Set(names)].sort().join()
  }
  t.equal(await readNames(), 'a,b')
  if (first === undefined || second === undefined) return
  first.state.isReady = false
  await waitUntil('the first one gets none', async () => (await readNames()) === 'b')
  first.state.isReady = true
  await waitUntil('the first one gets some again', async () => (await readNames()) === 'a,b')
  second.server.close()
  t.equal(await readNames(), 'a', 'the second one does not listen')
  first.state.isReady = false
  await waitUntil('none is ready', async () => (await readNames().catch(() => '')) === '')
  t.ok(proxy.refused > 0)
})
