// An HTTP proxy in front of a coordinator that changes responses, as an attacker on the network could.
import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'

/** Returns the changed body. */
export type Rewrite = (path: string, body: Buffer) => Buffer

export type RewritingProxy = {
  port: number
  /** The next responses are changed by this function. undefined: not changed. */
  rewrite(change: Rewrite | undefined): void
  close(): Promise<void>
}

/** @param getPort the coordinator's port on the loopback interface */
export async function startRewritingProxy(getPort: () => number): Promise<RewritingProxy> {
  let change: Rewrite | undefined
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    const { method, url: path = '/', headers } = request
    const forwarded = httpRequest({ host: '127.0.0.1', port: getPort(), method, path, headers, agent: false })
    forwarded.on('error', () => response.destroy())
    forwarded.on('response', async (upstream) => {
      const { statusCode = 502 } = upstream
      if (change === undefined) return upstream.pipe(response.writeHead(statusCode, upstream.headers))
      const body = change(path, Buffer.concat(await upstream.toArray()))
      const headers = { ...upstream.headers, 'content-length': String(body.length) }
      return response.writeHead(statusCode, headers).end(body)
    })
    request.pipe(forwarded)
  })
  // The connections of agents.
  server.on('upgrade', (request, downstream: Socket, head) => {
    const upstream = connect(getPort(), '127.0.0.1')
    const lines = Array.from({ length: request.rawHeaders.length / 2 }, (_, index) =>
      request.rawHeaders.slice(2 * index, 2 * index + 2).join(': '),
    )
    upstream.write([`${request.method} ${request.url} HTTP/1.1`, ...lines, '', ''].join('\r\n'))
    upstream.write(head)
    for (const [from, to] of [
      [downstream, upstream],
      [upstream, downstream],
    ] as const) {
      from.on('error', () => undefined).on('close', () => to.destroy())
      from.pipe(to)
      sockets.add(from)
      from.once('close', () => sockets.delete(from))
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    rewrite(next) {
      change = next
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
