// An HTTP proxy that forwards CONNECT requests only, and a server that ends TLS before a coordinator.
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'

type Teardown = { teardown(callback: () => unknown): void }

const TLS_DIR = join(import.meta.dirname, '../fixtures/tls')
/** The certificate of localhost is its own authority. */
export const CA_FILE = join(TLS_DIR, 'cert.pem')

async function listen(t: Teardown, server: Server, sockets: Set<Socket>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

function link(from: Socket, to: Socket): void {
  for (const [source, target] of [
    [from, to],
    [to, from],
  ] as const) {
    source.on('error', () => undefined)
    source.on('close', () => target.destroy())
    source.pipe(target)
  }
}

export async function startConnectProxy(t: Teardown) {
  const targets: string[] = []
  const ports = new Set<number>()
  const sockets = new Set<Socket>()
  const server = createHttpServer((_request, response) => void response.writeHead(405).end())
  server.on('connect', (request, client: Socket) => {
    const { hostname, port } = new URL(`http://${request.url}`)
    targets.push(`${hostname}:${port}`)
    const upstream = connect(Number(port), hostname, () => {
      if (upstream.localPort !== undefined) ports.add(upstream.localPort)
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      link(client, upstream)
    })
    client.on('error', () => upstream.destroy())
    upstream.on('error', () => client.destroy())
    for (const socket of [client, upstream]) sockets.add(socket)
  })
  const port = await listen(t, server, sockets)
  return {
    url: `http://127.0.0.1:${port}`,
    /** The targets of the CONNECT requests. */
    targets,
    /** Whether the proxy has opened the connection with this port at its own side. */
    hasOpened: (localPort: number) => ports.has(localPort),
  }
}

/** @param getTargetPort the port of the coordinator, which starts later */
export async function startTlsServer(t: Teardown, getTargetPort: () => number) {
  const clientPorts: number[] = []
  const sockets = new Set<Socket>()
  const credentials = { key: readFileSync(join(TLS_DIR, 'key.pem')), cert: readFileSync(CA_FILE) }
  const server = createTlsServer(credentials, (client) => {
    if (client.remotePort !== undefined) clientPorts.push(client.remotePort)
    const upstream = connect(getTargetPort(), '127.0.0.1')
    for (const socket of [client, upstream]) sockets.add(socket)
    link(client, upstream)
  })
  const port = await listen(t, server, sockets)
  return { port, clientPorts }
}
