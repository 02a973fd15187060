// A coordinator behind something that ends TLS, as on a public address: the tunnel and the transfers over https.
// test/fixtures/tls: a self-signed certificate for 127.0.0.1 and localhost, of no worth to anybody.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { createServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import t, { type Test } from 'tap'
import { createTransferDialer } from '../../../agent/tunnel/transfer-dialer.ts'
import { readAll, startTestAgent, startTestCoordinator } from '../../support/tunnel.ts'

const pem = (name: string) => readFileSync(join(import.meta.dirname, '../../fixtures/tls', name))

async function behindTls(t: Test) {
  const coordinator = await startTestCoordinator({ dialBackTimeoutMs: 5000 })
  const server = createServer({ cert: pem('cert.pem'), key: pem('key.pem') }, (near) => {
    const far = connect(coordinator.port, '127.0.0.1')
    near.pipe(far).pipe(near)
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const)
      one.on('error', () => undefined).on('close', () => other.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    await coordinator.close()
    await new Promise((resolve) => server.close(resolve))
  })
  return { coordinator, url: `https://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

t.test('with a certificate that is trusted', async (t) => {
  const trusted = getCACertificates('default')
  setDefaultCACertificates([...trusted, pem('cert.pem').toString()])
  t.after(() => setDefaultCACertificates(trusted))
  const { coordinator, url } = await behindTls(t)
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, url, (app) => {
    app.get('/hello', async () => ({ hello: 'over tls' }))
  })
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, 10_000)
  const answer = await tunnel.request({ method: 'GET', path: '/hello' })
  t.same(JSON.parse((await readAll(answer.body)).toString()), { hello: 'over tls' })

  const { transfers } = coordinator.tunnels
  const dialer = createTransferDialer({
    boxId: box.boxId,
    readUrl: async () => url,
    readToken: async () => box.token,
  })
  const bytes = randomBytes(3_000_001)
  const up = transfers.expect(box.boxId)
  const fetching = (async () => {
    const copies: Buffer[] = []
    const { chunks } = await dialer.fetch(up.id, bytes.length)
    for await (const chunk of chunks) copies.push(Buffer.from(chunk))
    return Buffer.concat(copies)
  })()
  const { response } = await up.connection
  response.writeHead(200, { 'content-length': bytes.length }).end(bytes)
  t.ok((await fetching).equals(bytes), 'an upload')

  const down = transfers.expect(box.boxId)
  const bringing = dialer.send(down.id, {}, Readable.from([bytes]))
  const dialed = await down.connection
  t.ok((await readAll(dialed.request)).equals(bytes), 'a download')
  dialed.response.writeHead(204).end()
  await bringing
})

t.test('a certificate that nobody vouches for is refused, and the token never sent', async (t) => {
  const { coordinator, url } = await behindTls(t)
  const box = coordinator.addBox()
  const dialer = createTransferDialer({
    boxId: box.boxId,
    readUrl: async () => url,
    readToken: async () => box.token,
  })
  const { chunks } = await dialer.fetch(coordinator.tunnels.transfers.expect(box.boxId).id, 1)
  await t.rejects(readAll(chunks), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
})
