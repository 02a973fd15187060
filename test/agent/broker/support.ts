// A broker of a box in this process, and a coordinator that accepts its connections to the hosts of secrets.
import { once } from 'node:events'
import { createServer, type IncomingMessage, request as requestHttp } from 'node:http'
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from 'node:net'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import pino from 'pino'
import type { Test } from 'tap'
import { WebSocketServer } from 'ws'
import { Broker } from '../../../agent/broker/broker.ts'
import { PROXY_USER } from '../../../agent/broker/credential.ts'
import { newUuid } from '../../../shared/ids.ts'
import { joinConnections } from '../../../shared/join-connections.ts'
import { BOX_HEADER, SECRET_PATH_PREFIX } from '../../../shared/protocol.ts'
import { BROKER_TEST_HOST } from '../../../shared/secret-hosts.ts'
import { TcpOverWebSocket } from '../../../shared/tcp-over-websocket.ts'
import { startUpstream } from '../../support/broker/upstream.ts'
import { silentLog } from '../../support/tunnel.ts'

/** Accepts connections to 127.0.0.1 until the end of the test. */
export async function listen(t: Test, server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => undefined))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

/** Sends each connection back, and ends it when the peer does. */
export const createEchoServer = (): Server =>
  createTcpServer({ allowHalfOpen: true }, (socket) => void socket.pipe(socket))

/** The test host responds with 204 over TLS; the other hosts are echo servers. */
export async function startFakeCoordinator(t: Test, covered: readonly string[]) {
  const { port: testPort, authority } = await startUpstream(t, ({ headers }, response) => {
    response.writeHead(headers.host === BROKER_TEST_HOST ? 204 : 421).end()
  })
  const echoPort = await listen(t, createEchoServer())
  const requests: { host: string; box: unknown; authorization: unknown }[] = []
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, autoPong: true })
  const server = createServer()
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const host = decodeURIComponent((request.url ?? '').slice(SECRET_PATH_PREFIX.length))
    const { [BOX_HEADER]: box, authorization } = request.headers
    requests.push({ host, box, authorization })
    if (host !== BROKER_TEST_HOST && !covered.includes(host))
      return void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n')
    sockets.handleUpgrade(request, socket, head, (ws) => {
      ws.pause()
      const target = connect({ port: host === BROKER_TEST_HOST ? testPort : echoPort, allowHalfOpen: true })
      joinConnections(new TcpOverWebSocket(ws), target)
    })
  })
  const port = await listen(t, server)
  return { url: `http://127.0.0.1:${port}`, ca: authority.certificate, requests }
}

export type BrokerSetup = {
  dir: string
  url: string | (() => string)
  log?: Logger
  retryMs?: number
}

export async function openBroker(t: Test, { dir, url, log = silentLog, retryMs = 0 }: BrokerSetup) {
  const boxId = newUuid()
  const broker = await Broker.open({
    ...{ boxId, dir, env: {}, log, retryMs },
    readUrl: async () => (typeof url === 'string' ? url : url()),
    readToken: async () => 'bxt_test',
  })
  t.teardown(() => broker.close())
  return { broker, boxId }
}

export type ProxyAddress = { port: number; credential: string }

/** Reads the variables as programs do. */
export function readProxy({ HTTPS_PROXY = '' }: Readonly<Record<string, string>>): ProxyAddress {
  const { port, password } = new URL(HTTPS_PROXY)
  return { port: Number(port), credential: password }
}

export const createHeader = (credential: string): string =>
  `Proxy-Authorization: Basic ${Buffer.from(`${PROXY_USER}:${credential}`).toString('base64')}\r\n`

/** A client that sends raw requests. */
export async function openClient(t: Test, port: number, host = '127.0.0.1') {
  const socket = connect({ port, host, allowHalfOpen: true })
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  let received = ''
  socket.on('error', () => undefined)
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text
  })
  const ended = once(socket, 'end')
  ended.catch(() => undefined)
  return {
    socket,
    /** Resolves with the first bytes up to the end of a head, and removes them. */
    async request(target: string, headers = ''): Promise<string> {
      socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${headers}\r\n`)
      while (!received.includes('\r\n\r\n')) await once(socket, 'data')
      const end = received.indexOf('\r\n\r\n') + 4
      const length = Number(/content-length: (\d+)/i.exec(received.slice(0, end))?.[1] ?? 0)
      while (received.length < end + length) await once(socket, 'data')
      const response = received.slice(0, end + length)
      received = received.slice(end + length)
      return response
    },
    /** All other bytes until the end. */
    async readRest(): Promise<string> {
      await ended
      return received
    },
  }
}

export async function requestPlain(port: number, url: string): Promise<{ status?: number; text: string }> {
  const request = requestHttp({ host: '127.0.0.1', port, path: url, agent: false })
  request.end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const text = Buffer.concat(await response.toArray()).toString()
  return { ...(response.statusCode !== undefined && { status: response.statusCode }), text }
}

/** A log whose lines the test reads. */
export function createLog(): { log: Logger; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  return { log, lines }
}
