// A real host: an HTTPS server on loopback, with a certificate for each name that is requested.
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createSecureContext, createServer as createTlsServer, type TLSSocket } from 'node:tls'
import type { Test } from 'tap'
import { createTestAuthority, type TestAuthority } from './authority.ts'

export type Upstream = {
  port: number
  authority: TestAuthority
  http: Server
  /** The next requests are served by this function. */
  serve(listener: RequestListener): void
  /** The names of TLS of all connections. */
  serverNames: string[]
  sockets: Set<TLSSocket>
}

export async function startUpstream(
  t: Test,
  listener: RequestListener = (_, response) => response.end(),
  { host = '127.0.0.1', port = 0 }: { host?: string; port?: number } = {},
): Promise<Upstream> {
  const authority = createTestAuthority('Real hosts')
  let current = listener
  const http = createServer((request, response) => current(request, response))
  const serverNames: string[] = []
  const sockets = new Set<TLSSocket>()
  const server = createTlsServer({
    ALPNProtocols: ['http/1.1'],
    noDelay: true,
    SNICallback(name, done) {
      const { key, certificate } = authority.getLeaf(name)
      done(null, createSecureContext({ key, cert: certificate }))
    },
  })
  server.on('tlsClientError', (_, socket) => socket.destroy())
  server.on('secureConnection', (socket) => {
    serverNames.push(String(socket.servername))
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    http.emit('connection', socket)
  })
  await once(server.listen(port, host), 'listening')
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    http.close()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    port: (server.address() as AddressInfo).port,
    authority,
    http,
    serve(next) {
      current = next
    },
    serverNames,
    sockets,
  }
}
