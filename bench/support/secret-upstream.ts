// The host of a secret, in a process of its own: an HTTPS server whose `GET /bytes/N` responds with N bytes.
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createTestAuthority } from '../../test/support/broker/authority.ts'

export type SecretUpstream = {
  port: number
  /** PEM: the authority of its certificate. */
  certificate: string
}

const CHUNK = Buffer.alloc(64 * 1024, 'x')
const host = process.argv[2] ?? ''
const authority = createTestAuthority('Real hosts')
const leaf = authority.getLeaf(host)

const server = createServer({ key: leaf.key, cert: leaf.certificate }, async (request, response) => {
  let missing = Number(request.url?.slice('/bytes/'.length))
  response.on('error', () => undefined)
  response.setHeader('content-length', missing)
  for (; missing > 0; missing -= CHUNK.length)
    if (!response.write(CHUNK.subarray(0, missing))) await once(response, 'drain').catch(() => undefined)
  response.end()
})
// The other candidate is measured meanwhile.
server.keepAliveTimeout = 120_000
await once(server.listen(0, '127.0.0.1'), 'listening')
const { port } = server.address() as AddressInfo
const message: SecretUpstream = { port, certificate: authority.certificate }
process.send?.(message)
// The benchmark has exited.
process.on('disconnect', () => process.exit())
