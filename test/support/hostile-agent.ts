// An agent that connects with the token of a box and violates the protocol. Any program on a box can be one.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { WebSocket } from 'ws'
import type { NextReports, ReportAck } from '../../shared/api/next-reports.ts'
import { PROTOCOL_VERSION } from '../../shared/protocol.ts'
import { BodySender } from '../../shared/tunnel-bodies.ts'
import {
  type AgentMessage,
  type CoordinatorMessage,
  coordinatorMessageSchema,
  formatMessage,
  parseMessage,
} from '../../shared/tunnel-messages.ts'
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

type RequestMessage = Extract<CoordinatorMessage, { type: 'request' }>

/** A request that the test responds to, correctly or not. */
export type HostileRequest = Omit<RequestMessage, 'headers'> & {
  headers: Record<string, string>
  body: string
  /** Responds as a correct agent. */
  respond(status: number, body?: string | Buffer): void
  /** Sends any message with the id of this request. */
  send(head: object, body?: string): void
  /** Sends any text. */
  sendRaw(text: string): void
}

/** Connects an agent whose responses the test defines. Resolves after the first request, which is for reports. */
export async function connectHostileAgent(
  url: string,
  box: BoxIdentity,
  onRequest: (request: HostileRequest) => void,
): Promise<WebSocket> {
  const ws = openTunnelSocket(url, box)
  const sender = new BodySender((message, onSent) => ws.send(message, onSent))
  ws.once('close', () => sender.close())
  const sendRaw = (text: string) => {
    if (ws.readyState === ws.OPEN) ws.send(text)
  }
  const receiveRequest = (message: RequestMessage, body: Buffer) => {
    const { id, headers = {} } = message
    const send = (head: object, body?: string) =>
      sendRaw(formatMessage({ id, ...head } as AgentMessage, body))
    onRequest({
      ...message,
      headers,
      body: body.toString(),
      send,
      sendRaw,
      respond(status, body = '') {
        const bytes = Buffer.from(body as Buffer)
        if (bytes.length <= 64 * 1024) return send({ type: 'response', status }, bytes.toString())
        send({ type: 'response', status, size: bytes.length })
        sender.start(id, bytes, () => undefined)
      },
    })
  }
  const first = new Promise<void>((resolve) => {
    ws.on('message', (data: Buffer<ArrayBuffer>) => {
      const { head, body } = parseMessage(coordinatorMessageSchema, data)
      if (head.type === 'request') receiveRequest(head, body)
      else if (head.type === 'window') sender.grant(head)
      else if (head.type === 'cancel' && sender.stop(head.id))
        sendRaw(formatMessage({ type: 'reset', id: head.id }))
      resolve()
    })
  })
  await Promise.race([first, once(ws, 'close')])
  return ws
}

export const isReportRequest = ({ path }: HostileRequest): boolean => path === '/reports/next'

/** The reports of a hostile agent: any text. */
export class HostileReports {
  readonly #texts: { text: string; onSent(): void }[] = []
  #waiting: HostileRequest | undefined
  #lastAck: ReportAck | undefined

  /** The last acknowledgement of the coordinator. */
  get lastAck(): ReportAck | undefined {
    return this.#lastAck
  }

  /** Responds with the next text. */
  serve(request: HostileRequest): void {
    const { acks }: NextReports = JSON.parse(request.body)
    this.#lastAck = acks.at(-1) ?? this.#lastAck
    this.#waiting = request
    this.#sendNext()
  }

  /** @param text at most 1 MiB. Resolves when it has been sent. */
  write(text: string): Promise<void> {
    return new Promise((resolve) => {
      this.#texts.push({ text, onSent: resolve })
      this.#sendNext()
    })
  }

  #sendNext(): void {
    const [next] = this.#texts
    if (this.#waiting === undefined || next === undefined) return
    this.#texts.shift()
    this.#waiting.respond(200, next.text)
    this.#waiting = undefined
    next.onSent()
  }
}

const WINDOW = formatMessage({ type: 'window', id: 1_000_000, bytes: 1 })

/** Ways to send many messages. Each sends some, and is called until the connection closes. */
export const FLOODS: Record<string, (ws: WebSocket) => void> = {
  'WebSocket pings': (ws) => ws.ping(),
  'WebSocket pings with a payload': (ws) => ws.ping(Buffer.alloc(125)),
  'WebSocket pongs': (ws) => ws.pong(),
  'windows of unknown requests': (ws) => ws.send(WINDOW),
  'binary messages': (ws) => ws.send(Buffer.from(WINDOW)),
}

/** Sends the flood as fast as the connection accepts it. Resolves when the coordinator has closed the connection. */
export async function flood(ws: WebSocket, send: (ws: WebSocket) => void): Promise<void> {
  const closed = once(ws, 'close')
  while (ws.readyState === ws.OPEN) {
    for (let i = 0; i < 100 && ws.readyState === ws.OPEN; i++) send(ws)
    do await new Promise(setImmediate)
    while (ws.readyState === ws.OPEN && ws.bufferedAmount > 0)
  }
  await closed
}
