// A proxy in front of several coordinators: each request and each upgrade goes to another one than that before.

import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { forward } from '../../coordinator/http/forward/forward.ts'
import { removeHopByHop } from '../../coordinator/http/forward/hop-by-hop.ts'
import { type HeaderPair, toPairs } from '../../coordinator/http/forward/raw-headers.ts'

export type AlternatingProxy = {
  url: string
  /** The ports of the coordinators that get requests. */
  targets: number[]
  close(): Promise<void>
}

type Upgrade = { socket: Socket; head: Buffer }

export async function startAlternatingProxy(): Promise<AlternatingProxy> {
  const targets: number[] = []
  const agent = new Agent({ keepAlive: true })
  let next = 0

  function createHeaders({ rawHeaders, headers }: IncomingMessage): HeaderPair[] {
    return [
      ...removeHopByHop(toPairs(rawHeaders)),
      ...(headers['transfer-encoding'] === undefined ? [] : [['Transfer-Encoding', 'chunked'] as const]),
      ...(headers.te === undefined ? [] : [['TE', 'trailers'] as const]),
      ...(headers.upgrade === undefined
        ? []
        : [['Connection', 'Upgrade'] as const, ['Upgrade', headers.upgrade] as const]),
    ]
  }

  function serve(request: IncomingMessage, response: ServerResponse, upgrade?: Upgrade): void {
    next += 1
    const port = targets[next % targets.length]
    forward({
      request,
      response,
      upgrade,
      agent,
      url: request.url ?? '/',
      headers: createHeaders(request),
      connection: { host: '127.0.0.1', port },
      createResponseHeaders: ({ rawHeaders }) => removeHopByHop(toPairs(rawHeaders)),
    }).catch(() => response.destroy())
  }

  const server = createServer(serve)
  server.on('checkContinue', serve)
  server.on('upgrade', (request, socket: Socket, head) => {
    socket.on('error', () => undefined)
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    response.once('finish', () => socket.end(() => socket.destroy()))
    serve(request, response, { socket, head })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    targets,
    async close() {
      agent.destroy()
      server.close()
      server.closeAllConnections()
    },
  }
}
