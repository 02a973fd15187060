// The tunnel and transfers over https, with a proxy that terminates TLS in front of the coordinator.
// test/fixtures/tls has a self-signed certificate for 127.0.0.1 and localhost, used only by tests.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { createServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import t, { type Test } from 'tap'
import { createTransferDialer } from '../../../agent/tunnel/transfer-dialer.ts'
import { transferBothWays } from '../../support/transfer-files.ts'
import { startTestAgent, startTunnelServer } from '../../support/tunnel.ts'
import { DEADLINE_MS } from '../../support/wait-until.ts'

const readPem = (name: string) => readFileSync(join(import.meta.dirname, '../../fixtures/tls', name))

async function startTlsCoordinator(t: Test) {
  const coordinator = await startTunnelServer({ dialBackTimeoutMs: DEADLINE_MS })
  const server = createServer({ cert: readPem('cert.pem'), key: readPem('key.pem') }, (downstream) => {
    const upstream = connect(coordinator.port, '127.0.0.1')
    downstream.pipe(upstream).pipe(downstream)
    for (const [socket, peer] of [
      [downstream, upstream],
      [upstream, downstream],
    ] as const)
      socket.on('error', () => undefined).on('close', () => peer.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    await coordinator.close()
    await new Promise((resolve) => server.close(resolve))
  })
  return { coordinator, url: `https://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

t.test('connects with a trusted certificate', async (t) => {
  const defaultCertificates = getCACertificates('default')
  setDefaultCACertificates([...defaultCertificates, readPem('cert.pem').toString()])
  t.after(() => setDefaultCACertificates(defaultCertificates))
  const { coordinator, url } = await startTlsCoordinator(t)
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, url, (router) => {
    router.add('GET', '/hello', async () => ({ hello: 'over tls' }))
  })
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  const response = await tunnel.call({ method: 'GET', path: '/hello', timeoutMs: DEADLINE_MS })
  t.same(JSON.parse(response.body.toString()), { hello: 'over tls' })

  await transferBothWays(t, coordinator, box, url, 3_000_001)
})

t.test('rejects an untrusted certificate', async (t) => {
  const { coordinator, url } = await startTlsCoordinator(t)
  const box = coordinator.addBox()
  const dialer = createTransferDialer({
    boxId: box.boxId,
    readUrl: async () => url,
    readToken: async () => box.token,
  })
  const { id } = coordinator.tunnels.transfers.expect(box.boxId)
  await t.rejects(dialer.fetch(id, 1), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
})
