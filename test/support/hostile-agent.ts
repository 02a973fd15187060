// An agent that connects with the token of a box and violates the protocol. Any program on a box can be one.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { WebSocket } from 'ws'
import { PREVIOUS_PROTOCOL_VERSION, PROTOCOL_HEADER, PROTOCOL_VERSION } from '../../shared/protocol.ts'
import { WebSocketDuplex } from '../../shared/websocket-duplex.ts'
import { readAll } from './tunnel.ts'

export type BoxIdentity = { boxId: string; token: string }

/** Opens the WebSocket of a tunnel, with the headers of an agent unless `headers` replaces them. */
export function openTunnelSocket(
  url: string,
  { boxId, token }: BoxIdentity,
  headers: Record<string, string> = {},
  { autoPong = true } = {},
): WebSocket {
  const ws = new WebSocket(`${url.replace('http', 'ws')}/agent/tunnel`, {
    perMessageDeflate: false,
    autoPong,
    headers: {
      authorization: `Bearer ${token}`,
      'boxwood-box': boxId,
      'boxwood-protocol': String(PROTOCOL_VERSION),
      'boxwood-instance': randomUUID(),
      'boxwood-agent-version': '0.0.0',
      ...headers,
    },
  })
  ws.on('error', () => undefined)
  return ws
}

export async function readRejection(ws: WebSocket) {
  const [, response] = await once(ws, 'unexpected-response')
  const { error } = JSON.parse((await readAll(response)).toString())
  return { status: response.statusCode as number, code: error.code as string, headers: response.headers }
}

/**
 * Connects an HTTP/2 server whose responses the test defines, with the previous version of the protocol, which has no
 * messages. Resolves after the first request, which is for reports.
 */
export async function connectHostileAgent(
  url: string,
  box: BoxIdentity,
  onStream: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void,
): Promise<WebSocket> {
  const ws = openTunnelSocket(url, box, { [PROTOCOL_HEADER]: String(PREVIOUS_PROTOCOL_VERSION) })
  const server = createServer({ maxSendHeaderBlockLength: 1_000_000, maxSessionMemory: 1000 })
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => undefined)
    if (!stream.destroyed) onStream(stream, headers)
  })
  server.on('sessionError', () => undefined)
  // In the listener: the coordinator's first message may arrive together with the upgrade.
  ws.once('open', () => {
    const duplex = new WebSocketDuplex(ws)
    duplex.on('error', () => undefined)
    duplex.once('close', () => ws.terminate())
    ws.on('message', (data: Buffer) => duplex.receive(data))
    ws.once('close', () => duplex.destroy())
    server.emit('connection', duplex)
  })
  await Promise.race([once(server, 'stream'), once(ws, 'close')])
  return ws
}

/** One HTTP/2 frame. */
function http2Frame(type: number, streamId: number, payload = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(9)
  header.writeUIntBE(payload.length, 0, 3)
  header[3] = type
  header.writeUInt32BE(streamId, 5)
  return Buffer.concat([header, payload])
}

const PING = http2Frame(6, 0, Buffer.alloc(8))
const SETTINGS = http2Frame(4, 0)
const WINDOW_UPDATE = http2Frame(8, 0, Buffer.from([0, 0, 0, 1]))
const TINY_DATA = http2Frame(0, 1, Buffer.alloc(1, 0x20))
const repeat = (frame: Buffer, count: number) => Buffer.concat(Array(count).fill(frame))

/** Ways to send many messages or frames. Each sends some, and is called until the connection closes. */
export const FLOODS: Record<string, (ws: WebSocket) => void> = {
  'WebSocket pings': (ws) => ws.ping(),
  'WebSocket pings with a payload': (ws) => ws.ping(Buffer.alloc(125)),
  'WebSocket pongs': (ws) => ws.pong(),
  'empty messages': (ws) => ws.send(Buffer.alloc(0)),
  'messages of one byte': (ws) => {
    for (const byte of PING) ws.send(Buffer.of(byte))
  },
  'HTTP/2 pings': (ws) => ws.send(repeat(PING, 10)),
  'HTTP/2 settings': (ws) => ws.send(repeat(SETTINGS, 10)),
  'one message with many window updates': (ws) => ws.send(repeat(WINDOW_UPDATE, 50_000)),
  'one message with many tiny data frames': (ws) => ws.send(repeat(TINY_DATA, 50_000)),
}

/** Sends the flood as fast as the connection accepts it. Resolves when the coordinator has closed the connection. */
export async function flood(ws: WebSocket, send: (ws: WebSocket) => void): Promise<void> {
  const closed = once(ws, 'close')
  // The agent's own HTTP/2 server would close the connection when it receives unexpected acknowledgements.
  ws.removeAllListeners('message')
  while (ws.readyState === ws.OPEN) {
    for (let i = 0; i < 100 && ws.readyState === ws.OPEN; i++) send(ws)
    do await new Promise(setImmediate)
    while (ws.readyState === ws.OPEN && ws.bufferedAmount > 0)
  }
  await closed
}
