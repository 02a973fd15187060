// A fake model server on loopback: Anthropic Messages, OpenAI Responses and OpenAI Chat Completions.
//
//   const models = await startModelServer(t)
//   models.url                                  http://127.0.0.1:PORT; the paths are /v1/messages, /v1/responses and
//                                               /v1/chat/completions
//   models.reply(text('Hello'))                 the reply to the next request. Without a reply: text('ok')
//   models.reply(toolCall('Bash', { command: 'true' }), text('done'))
//                                               a tool call, then a text after the result of the tool
//   models.replyTo('marker', text('Hello'))     only to requests whose user texts contain the marker: for concurrent runs
//   models.replyAlways(failure(500, 'broken'))  replaces the default, for clients that retry
//   const held = holdStream('partial')          models.reply(held.reply); await held.started; held.release(' rest')
//   cutStream('partial'), modelNotFound('x')    further replies (replies.ts)
//   models.requests                             the requests with model, effort, tools and history (model-request.ts)
//   models.scripted                             without the auxiliary ones: titles and probes, which offer no tools
//
// Requests without tools do not use up the script: their reply is the text "auxiliary".
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { type WebSocket, WebSocketServer } from 'ws'
import { createMessagesEncoder, messagesError, parseMessages, wholeMessage } from './anthropic-messages.ts'
import {
  asArray,
  asObject,
  type JsonObject,
  type ModelRequest,
  type StreamEncoder,
  userTexts,
} from './model-request.ts'
import { createChatEncoder, openaiError, parseChat, wholeChat } from './openai-chat.ts'
import { createResponsesEncoder, parseResponses, wholeResponse } from './openai-responses.ts'
import { createScript, type FailureReply, holdOf, type ModelReply, type Script, text } from './replies.ts'

export type ModelServer = Omit<Script, 'take'> & {
  url: string
  requests: ModelRequest[]
  readonly scripted: ModelRequest[]
}

const APIS = {
  messages: {
    path: /\/messages$/,
    parse: parseMessages,
    encoder: createMessagesEncoder,
    whole: wholeMessage,
    error: ({ status, message }: FailureReply) => messagesError(status, message),
  },
  responses: {
    path: /\/responses$/,
    parse: parseResponses,
    encoder: createResponsesEncoder,
    whole: wholeResponse,
    error: ({ message, code }: FailureReply) => openaiError(message, code ?? null),
  },
  chat: {
    path: /\/chat\/completions$/,
    parse: parseChat,
    encoder: createChatEncoder,
    whole: wholeChat,
    error: ({ message, code }: FailureReply) => openaiError(message, code ?? null),
  },
}

export type ModelServerOptions = {
  /** Whether it has the Responses API over WebSockets, which codex uses where it can. Default: false. */
  acceptsWebSockets?: boolean
}

export async function startModelServer(
  t: { teardown(callback: () => unknown): void },
  { acceptsWebSockets = false }: ModelServerOptions = {},
): Promise<ModelServer> {
  const script = createScript()
  const requests: ModelRequest[] = []
  let lastId = 0
  const server = createServer((incoming, response) => {
    handle(incoming, response).catch((error: unknown) => {
      // The client has disconnected, or the test has a wrong script. The client gets an incomplete response.
      response.destroy(error instanceof Error ? error : undefined)
    })
  })

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(incoming)
    const { pathname } = new URL(incoming.url ?? '/', 'http://localhost')
    const [api] = (['messages', 'responses', 'chat'] as const).filter((name) =>
      APIS[name].path.test(pathname),
    )
    if (incoming.method === 'POST' && pathname.endsWith('/count_tokens'))
      return sendJson(response, 200, { input_tokens: Math.ceil(body.length / 4) })
    if (incoming.method !== 'POST' || !api) return sendJson(response, 404, openaiError('not found', null))
    const { request, reply, id } = take(api, asObject(JSON.parse(body.toString())), pathname, incoming)
    if ('status' in reply) return sendJson(response, reply.status, APIS[api].error(reply))
    await sendReply(response, request, reply, id)
  }

  function take(api: keyof typeof APIS, body: JsonObject, path: string, { headers }: IncomingMessage) {
    const parsed = APIS[api].parse(body)
    const auxiliary = parsed.tools.length === 0
    const request = { ...parsed, api, path, headers, body, auxiliary }
    requests.push(request)
    lastId += 1
    const reply = auxiliary ? text('auxiliary') : script.take(userTexts(request).join('\n'))
    return { request, reply, id: String(lastId) }
  }

  /** Each message of the client is a request, and each event of its reply is a message. */
  function serveWebSocket(ws: WebSocket, incoming: IncomingMessage): void {
    let input: JsonObject[] = []
    ws.on('message', (data) => {
      const message = asObject(JSON.parse(data.toString()))
      // A request that continues a response has only what is new.
      input = [...(message.previous_response_id ? input : []), ...asArray(message.input)]
      const body = { ...message, input, stream: true }
      const { request, reply, id } = take('responses', body, incoming.url ?? '', incoming)
      if ('status' in reply) return void ws.close()
      sendReply(new WebSocketResponse(ws), request, reply, id).catch(() => ws.terminate())
    })
  }

  const sockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    if (acceptsWebSockets)
      return sockets.handleUpgrade(request, socket, head, (ws) => serveWebSocket(ws, request))
    // codex tries a WebSocket first and continues with HTTP after this answer.
    socket.end('HTTP/1.1 426 Upgrade Required\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const ws of sockets.clients) ws.terminate()
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    get scripted() {
      return requests.filter(({ auxiliary }) => !auxiliary)
    },
    reply: script.reply,
    replyTo: script.replyTo,
    replyAlways: script.replyAlways,
  }
}

/** The members of a response that a streamed reply uses. */
class WebSocketResponse {
  readonly #ws: WebSocket

  constructor(ws: WebSocket) {
    this.#ws = ws
  }

  writeHead(): void {
    // The upgrade was the head.
  }

  write(chunk: string, done?: () => void): void {
    for (const [, data = ''] of chunk.matchAll(/^data: (.*)$/gm)) this.#ws.send(data)
    done?.()
  }

  end(chunk: string): void {
    this.write(chunk)
  }

  destroy(): void {
    this.#ws.terminate()
  }

  once(event: 'close', listener: () => void): void {
    this.#ws.once(event, listener)
  }
}

async function sendReply(
  response: ServerResponse | WebSocketResponse,
  request: ModelRequest,
  reply: ModelReply,
  id: string,
): Promise<void> {
  const { encoder: createEncoder, whole } = APIS[request.api]
  const deltas = typeof reply.text === 'string' ? [reply.text] : (reply.text ?? [])
  if (!request.stream) {
    if (reply.cut) return void response.destroy()
    if (response instanceof WebSocketResponse) throw new Error('replies over a WebSocket are streams')
    return sendJson(response, 200, whole(request.model, id, deltas.join('')))
  }
  const encoder: StreamEncoder = createEncoder(request.model, id)
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  response.write(encoder.start())
  if (reply.reasoning !== undefined) response.write(encoder.reasoning(reply.reasoning))
  for (const delta of deltas) response.write(encoder.text(delta))
  if (reply.hold) {
    const hold = holdOf(reply.hold)
    const closed = new Promise<null>((resolve) => response.once('close', () => resolve(null)))
    hold.onStarted()
    const rest = await Promise.race([hold.released, closed])
    if (rest === null) return hold.onDisconnected()
    if (rest !== '') response.write(encoder.text(rest))
  }
  for (const [index, call] of (reply.tools ?? []).entries())
    response.write(encoder.tool({ id: `call_${id}_${index}`, ...call }))
  if (reply.cut) {
    // The text reaches the client before the connection breaks.
    await new Promise<void>((resolve) => response.write(': cut\n\n', () => resolve()))
    return void response.destroy()
  }
  response.end(encoder.finish())
}

function sendJson(response: ServerResponse, status: number, body: JsonObject): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
