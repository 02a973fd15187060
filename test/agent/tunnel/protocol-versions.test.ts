// Agent and coordinator work with the previous version of the protocol on the other side.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { PREVIOUS_PROTOCOL_VERSION, PROTOCOL_HEADER, PROTOCOL_VERSION } from '../../../shared/protocol.ts'
import { startTestAgent, startTunnelServer } from '../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'

/** A coordinator that accepts these versions only, and the versions with which agents connected. */
async function startCoordinator(t: Test, acceptedVersions: readonly number[]) {
  const coordinator = await startTunnelServer({ acceptedVersions })
  t.after(() => coordinator.close())
  const attempts: string[] = []
  const server = createServer().on('upgrade', (request, socket, head) => {
    attempts.push(String(request.headers[PROTOCOL_HEADER]))
    coordinator.tunnels.handleUpgrade(request, socket, head)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => new Promise((resolve) => server.close(resolve)))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { coordinator, url, attempts }
}

t.equal(PREVIOUS_PROTOCOL_VERSION, PROTOCOL_VERSION - 1)

t.test('an agent uses the newest version first', async (t) => {
  const { coordinator, url, attempts } = await startCoordinator(t, [
    PROTOCOL_VERSION,
    PREVIOUS_PROTOCOL_VERSION,
  ])
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, url)
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  t.equal(tunnel.protocolVersion, PROTOCOL_VERSION)
  t.same(attempts, [String(PROTOCOL_VERSION)])
})

t.test('an agent falls back to the previous version', async (t) => {
  const { coordinator, url, attempts } = await startCoordinator(t, [PREVIOUS_PROTOCOL_VERSION])
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, url, (router) => {
    router.add('GET', '/hello', () => 'hello')
    router.add('GET', '/large', () => 'x'.repeat(100_000))
  })
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  t.equal(tunnel.protocolVersion, PREVIOUS_PROTOCOL_VERSION)
  t.same(attempts, [PROTOCOL_VERSION, PREVIOUS_PROTOCOL_VERSION].map(String))
  const { status } = await tunnel.call({ method: 'GET', path: '/hello', timeoutMs: DEADLINE_MS })
  t.equal(status, 200)
  // A coordinator of version 5 knows no chunks.
  const large = await tunnel.call({ method: 'GET', path: '/large', timeoutMs: DEADLINE_MS })
  t.match(large, { status: 500, body: { length: 0 } })
})

t.test('an agent retries both versions with a coordinator that accepts neither', async (t) => {
  const { coordinator, url, attempts } = await startCoordinator(t, [])
  const agent = await startTestAgent(coordinator.addBox(), url)
  t.after(() => agent.close())
  await waitUntil('the agent has connected four times', () => attempts.length >= 4)
  const both = [PROTOCOL_VERSION, PREVIOUS_PROTOCOL_VERSION].map(String)
  t.same(attempts.slice(0, 4), [...both, ...both])
})
