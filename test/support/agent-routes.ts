// Calls routes of the agent as the tunnel does, and serves them over HTTP.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type { TransferDialer } from '../../agent/files/transfer-dialer.ts'
import { type AgentRequest, executeRequest } from '../../agent/requests/execute-request.ts'
import type { JsonMethod, JsonRouter } from '../../agent/requests/json-routes.ts'
import type { DownloadHead } from '../../shared/api/files.ts'
import { DIAL_BACK_HEADER, TRANSFER_LENGTH_HEADER } from '../../shared/protocol.ts'
import { silentLog } from './tunnel.ts'

export type RouteRequest = Pick<AgentRequest, 'path' | 'headers'> & {
  /** Default: GET. */
  method?: JsonMethod
  /** Sent as JSON. */
  body?: unknown
  signal?: AbortSignal
}
export type RouteResponse = { status: number; text: string }

/** Executes the request. Rejects when the agent is stopping. */
export async function callRoute(router: JsonRouter, request: RouteRequest): Promise<RouteResponse> {
  const { method = 'GET', body, signal, ...rest } = request
  const controller = new AbortController()
  signal?.addEventListener('abort', () => controller.abort(), { once: true })
  const afterwards: (() => void)[] = []
  const controls = {
    signal: controller.signal,
    abort: () => controller.abort(),
    afterResponse: (work: () => void) => void afterwards.push(work),
  }
  const bytes = Buffer.from(body === undefined ? '' : JSON.stringify(body))
  const response = await executeRequest(router, { ...rest, method, body: bytes }, controls, silentLog)
  for (const work of afterwards) work()
  if (response === null) throw new Error('the agent is stopping')
  return { status: response.status, text: response.body.toString() }
}

type Exchange = { request: IncomingMessage; response: ServerResponse }

/**
 * Serves the routes over HTTP, so that tests can use fetch. The HTTP request is the dial-back connection of an upload or a
 * download.
 * @param createRouter gets the dialer of the transfers
 */
export async function serveRoutes(createRouter: (transferDialer: TransferDialer) => JsonRouter) {
  const exchanges = new Map<string, Exchange>()
  const take = (id: string): Exchange => {
    const exchange = exchanges.get(id)
    exchanges.delete(id)
    if (exchange === undefined) throw new Error(`there is no connection ${id}`)
    return exchange
  }
  const router = createRouter({
    async fetch(id) {
      const { request } = take(id)
      return { chunks: request.iterator({ destroyOnReturn: false }), release: () => void request.resume() }
    },
    async send(id, headers, body) {
      const { response } = take(id)
      response.writeHead(headers['content-range'] === undefined ? 200 : 206, headers)
      await pipeline(body, response)
    },
  })
  let lastId = 0

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = request
    const isHead = method === 'HEAD'
    const isDownload = path.startsWith('/download')
    const isUpload = path.startsWith('/upload')
    const id = headers[DIAL_BACK_HEADER] ?? String(++lastId)
    const controller = new AbortController()
    response.once('close', () => controller.abort())
    if (isDownload || isUpload) exchanges.set(String(id), { request, response })
    const text = isUpload ? '' : (await buffer(request)).toString()
    const result = await callRoute(router, {
      method: isHead ? 'GET' : (method as JsonMethod),
      path,
      headers: {
        ...(headers['content-length'] && { [TRANSFER_LENGTH_HEADER]: headers['content-length'] }),
        ...headers,
        [DIAL_BACK_HEADER]: isHead ? undefined : String(id),
      },
      ...(text !== '' && { body: JSON.parse(text) }),
      signal: controller.signal,
    })
    if (isDownload && result.status === 200) {
      // The dialer sends the content.
      if (result.text === '') return
      const { status, headers }: DownloadHead = JSON.parse(result.text)
      response.writeHead(status, headers).end()
    } else {
      response.writeHead(result.status, { 'content-type': 'application/json' }).end(result.text)
    }
  }

  const server = createServer((request, response) => {
    request.on('error', () => undefined)
    serve(request, response).catch(() => response.destroy())
  })
  // Otherwise a connection that fetch uses again may be closed at the same time.
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    router,
    port,
    url: `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
