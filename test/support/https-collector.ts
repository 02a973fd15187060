// An HTTPS server with a certificate of its own authority, which receives deliveries and responds as a test requests.
import { once } from 'node:events'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { createCertificate } from './certificate.ts'
import { createTempDir } from './temp-dir.ts'
import { waitUntil } from './wait-until.ts'

export type Received = { path: string; headers: IncomingHttpHeaders; body: string }
type Respond = (response: ServerResponse, request: Received) => void

const HOST = 'collector.test'
const respondWithSuccess: Respond = (response) => void response.writeHead(204).end()

export type Collector = Awaited<ReturnType<typeof startCollector>>

/** Responds with 204, unless `respondWith` is called. Needs openssl. */
export async function startCollector(t: Test) {
  const certificate = createCertificate(createTempDir(t, 'collector'), HOST)
  const received: Received[] = []
  let connections = 0
  let respond = respondWithSuccess
  const server = createServer(certificate, async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { url: path = '', headers } = request
    const entry = { path, headers, body: Buffer.concat(chunks).toString() }
    received.push(entry)
    respond(response, entry)
  })
  server.on('connection', () => {
    connections += 1
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    port,
    ca: certificate.ca,
    url: `https://${HOST}:${port}/events`,
    received,
    resolve: async () => ['127.0.0.1'],
    countConnections: () => connections,
    /** Forgets what has been received, and responds with 204 again. */
    reset() {
      received.length = 0
      connections = 0
      respond = respondWithSuccess
    },
    respondWith(next: Respond) {
      respond = next
    },
    waitForRequests: (count: number) =>
      waitUntil(`${count} requests have arrived`, async () => received.length >= count),
  }
}
