// An HTTP proxy in front of a coordinator that records the requests of clients and makes single responses fail or differ, as a
// network, another proxy or an old state could. It implements no route: what it does not replace is the coordinator's response.
import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
  request as sendRequest,
} from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import { getOpenApiCheck } from './openapi-check.ts'

/** Sends the request to the coordinator, with other headers if they are given. Resolves with the response, whose body is unread. */
export type Forward = (headers?: IncomingHttpHeaders) => Promise<IncomingMessage>
export type ResponseFault = (response: ServerResponse, request: IncomingMessage, forward: Forward) => unknown
/** `open` connects the client to the coordinator, and returns the connection to it. */
export type UpgradeFault = (
  client: Socket,
  open: () => Socket,
  request: IncomingMessage,
  head: Buffer,
) => unknown

export type RecordedRequest = { line: string; headers: IncomingHttpHeaders }

export type FaultProxy = {
  url: string
  /** To be called before the first request. */
  setTarget(url: string): void
  /** All requests: `METHOD /path` and the headers. */
  requests: RecordedRequest[]
  /**
   * Replaces the next response to a request whose line starts with `linePrefix`. Faults with the same prefix are used in the
   * order in which they were added.
   */
  failNext(linePrefix: string, fault: ResponseFault): void
  /** Replaces the next response by this one. */
  respondNext(linePrefix: string, status: number, body: unknown, headers?: Record<string, string>): void
  /** Changes the JSON body of the next response of the coordinator. The value that `change` returns replaces the body. */
  // biome-ignore lint/suspicious/noExplicitAny: tests change arbitrary fields.
  changeNext(linePrefix: string, change: (body: any) => unknown): void
  /** Replaces the next WebSocket whose request starts with `linePrefix`. */
  failNextUpgrade(linePrefix: string, fault: UpgradeFault): void
  /** Forgets the faults that no request has used. */
  clearFaults(): void
  /** Resolves after the next response of the coordinator to a request whose line starts with `linePrefix`. */
  waitForResponse(linePrefix: string): Promise<void>
  /** Closes the open connections. */
  closeConnections(): void
  /** Refuses connections until `action` is complete. */
  stopDuring(action: () => Promise<void>): Promise<void>
}

/** Checks the JSON responses that it forwards against the OpenAPI document. Closes after the test. */
export async function startFaultProxy(t: Test): Promise<FaultProxy> {
  const requests: RecordedRequest[] = []
  const faults: { linePrefix: string; fault: ResponseFault }[] = []
  const upgradeFaults: { linePrefix: string; fault: UpgradeFault }[] = []
  const waiters: { linePrefix: string; resolve: () => void }[] = []
  const sockets = new Set<Socket>()
  let target = ''

  const forward = async (
    request: IncomingMessage,
    headers: IncomingHttpHeaders = request.headers,
  ): Promise<IncomingMessage> => {
    const { method, url: path } = request
    // The proxy reads the bodies: they are not compressed.
    const { 'accept-encoding': _encoding, ...others } = headers
    const upstream = sendRequest(`${target}${path}`, { method, headers: others, agent: false })
    request.on('error', () => undefined).pipe(upstream)
    const onClose = () => void upstream.destroy()
    request.socket.once('close', onClose)
    upstream.once('close', () => request.socket.off('close', onClose))
    const [response] = (await once(upstream, 'response')) as [IncomingMessage]
    upstream.on('error', () => undefined)
    return response
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const line = `${request.method} ${request.url}`
    requests.push({ line, headers: request.headers })
    const fault = takeFirst(faults, line)?.fault
    if (fault !== undefined)
      return void (await fault(response, request, (headers) => forward(request, headers)))
    const upstream = await forward(request)
    const { statusCode = 0, headers } = upstream
    if (!isJson(upstream) || request.method === 'HEAD') {
      // Also when the client has disconnected.
      upstream.on('error', () => response.destroy())
      upstream.pipe(response.writeHead(statusCode, headers))
    } else {
      const body = await buffer(upstream)
      await checkResponse(request, upstream, body)
      response.writeHead(statusCode, headers).end(body)
    }
    response.once('close', () => {
      for (let waiter = takeFirst(waiters, line); waiter; waiter = takeFirst(waiters, line)) waiter.resolve()
    })
  }

  async function checkResponse(
    { method = '', url = '' }: IncomingMessage,
    upstream: IncomingMessage,
    body: Buffer,
  ) {
    const check = await getOpenApiCheck(target)
    const headers = new Headers(upstream.headers as Record<string, string>)
    try {
      check(method, url, { status: upstream.statusCode ?? 0, headers, text: body.toString() })
    } catch (error) {
      t.fail(String(error))
    }
  }

  const server = createServer((request, response) => {
    respond(request, response).catch(() => response.destroy())
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('upgrade', (request, client: Socket, head: Buffer) => {
    const line = `${request.method} ${request.url}`
    requests.push({ line, headers: request.headers })
    client.on('error', () => undefined)
    const open = () => openUpgrade(request, client, head, target)
    const fault = takeFirst(upgradeFaults, line)?.fault
    if (fault === undefined) open()
    else fault(client, open, request, head)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const closeConnections = () => {
    for (const socket of sockets) socket.destroy()
  }
  t.teardown(() => {
    closeConnections()
    server.close()
  })
  const failNext: FaultProxy['failNext'] = (linePrefix, fault) => void faults.push({ linePrefix, fault })
  return {
    url: `http://127.0.0.1:${port}`,
    setTarget(url) {
      target = url
    },
    requests,
    failNext,
    respondNext: (linePrefix, status, body, headers = {}) =>
      failNext(linePrefix, (response) =>
        response
          .writeHead(status, { 'content-type': 'application/json', ...headers })
          .end(typeof body === 'string' ? body : JSON.stringify(body)),
      ),
    changeNext: (linePrefix, change) =>
      failNext(linePrefix, async (response, _, forward) => {
        const upstream = await forward()
        const body = JSON.parse((await buffer(upstream)).toString())
        const { 'content-length': __, ...headers } = upstream.headers
        response.writeHead(upstream.statusCode ?? 0, headers).end(JSON.stringify(change(body) ?? body))
      }),
    failNextUpgrade: (linePrefix, fault) => void upgradeFaults.push({ linePrefix, fault }),
    waitForResponse: (linePrefix) =>
      new Promise<void>((resolve) => void waiters.push({ linePrefix, resolve })),
    clearFaults() {
      faults.length = upgradeFaults.length = 0
    },
    closeConnections,
    async stopDuring(action) {
      const closed = once(server, 'close')
      server.close()
      closeConnections()
      await closed
      await action()
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
  }
}

function takeFirst<T extends { linePrefix: string }>(list: T[], line: string): T | undefined {
  const index = list.findIndex(({ linePrefix }) => line.startsWith(linePrefix))
  return index < 0 ? undefined : list.splice(index, 1)[0]
}

const isJson = ({ headers }: IncomingMessage) =>
  headers['content-type']?.startsWith('application/json') ?? false

/** Connects a WebSocket to the coordinator. Returns the connection to it. */
export function openUpgrade(request: IncomingMessage, client: Socket, head: Buffer, target: string): Socket {
  const coordinator = connect(Number(new URL(target).port), '127.0.0.1')
  const lines = Array.from({ length: request.rawHeaders.length / 2 }, (_, index) =>
    request.rawHeaders.slice(2 * index, 2 * index + 2).join(': '),
  )
  coordinator.write([`${request.method} ${request.url} HTTP/1.1`, ...lines, '', ''].join('\r\n'))
  coordinator.write(head)
  for (const [from, to] of [
    [client, coordinator],
    [coordinator, client],
  ] as const) {
    from.setNoDelay(true)
    // The last bytes of a connection that ended may still be on their way.
    from.on('error', () => undefined).on('close', () => (from.readableEnded ? to.end() : to.destroy()))
    from.pipe(to)
  }
  return coordinator
}

/** Cuts a WebSocket after this number of bytes from the client. */
export const cutFromClient =
  (afterBytes: number): UpgradeFault =>
  (client, open) =>
    cutAfter(open, client, afterBytes, client)

/** Cuts a WebSocket when this number of bytes has arrived from the coordinator. */
export const cutFromCoordinator =
  (afterBytes: number): UpgradeFault =>
  (client, open) => {
    const coordinator = open()
    cutAfter(() => coordinator, coordinator, afterBytes, client)
  }

function cutAfter(open: () => Socket, source: Socket, afterBytes: number, client: Socket): void {
  open()
  let left = afterBytes
  source.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) client.destroy()
  })
}

/** Refuses a WebSocket with this response. */
export const refuseUpgrade =
  (status: number, body: unknown, headers: Record<string, string> = {}): UpgradeFault =>
  (client) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const all = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers }
    const lines = Object.entries({ ...all, connection: 'close' }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    )
    client.end(`HTTP/1.1 ${status} Refused\r\n${lines.join('')}\r\n${text}`)
  }
