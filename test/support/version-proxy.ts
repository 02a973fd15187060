// An HTTP proxy that makes a coordinator look like one of another version: other fields, values, codes, events and routes.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse, request as sendRequest } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { openUpgrade } from './fault-proxy.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests change arbitrary fields.
export type Json = any

export type Version = {
  /** Responds instead of the coordinator. undefined: the coordinator responds. */
  respond?(line: string): { status: number; body: unknown; headers?: Record<string, string> } | undefined
  /** Returns the body that the client gets. @param line `METHOD /path` */
  changeBody?(body: Json, line: string): unknown
  /** Returns the data of an event that the client gets. */
  changeEvent?(data: Json, name: string): unknown
  /** Is sent before each event of a stream. */
  beforeEvent?: string
  /** Request headers that the coordinator does not get, in lower case. */
  withoutHeaders?: readonly string[]
}

export type VersionProxy = {
  url: string
  /** From the next request on. */
  setVersion(version: Version): void
}

/** Stops after the test. @param target the URL that clients of the coordinator use */
export async function startVersionProxy(t: Test, target: string): Promise<VersionProxy> {
  let version: Version = {}
  const server = createServer((request, response) => {
    respond(request, response).catch(() => response.destroy())
  })

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url: path = '/' } = request
    const { respond, changeBody, withoutHeaders = [] } = version
    const line = `${method} ${path}`
    const own = respond?.(line)
    if (own !== undefined) {
      request.resume()
      const headers = { 'content-type': 'application/json', ...own.headers }
      return void response.writeHead(own.status, headers).end(JSON.stringify(own.body))
    }
    // The proxy reads the bodies: they are not compressed.
    const omitted = ['accept-encoding', ...withoutHeaders]
    const headers = Object.fromEntries(
      Object.entries(request.headers).filter(([name]) => !omitted.includes(name)),
    )
    const forwarded = sendRequest(`${target}${path}`, { method, headers, agent: false })
    request.pipe(forwarded)
    response.once('close', () => forwarded.destroy())
    const [upstream] = (await once(forwarded, 'response')) as [IncomingMessage]
    const { 'content-length': _length, ...rest } = upstream.headers
    const type = upstream.headers['content-type'] ?? ''
    response.writeHead(
      upstream.statusCode ?? 0,
      type.startsWith('application/json') ? rest : upstream.headers,
    )
    if (type.startsWith('application/json')) {
      // The coordinator names the URL of its edge.
      const body = JSON.parse((await text(upstream)).replaceAll(target, url))
      response.end(JSON.stringify(changeBody === undefined ? body : changeBody(body, line)))
    } else if (type.startsWith('text/event-stream')) {
      for await (const event of readEvents(upstream)) response.write(changeEvent(event, version))
      response.end()
    } else upstream.pipe(response)
  }

  // WebSockets are not changed.
  const sockets = new Set<Socket>()
  server.on('upgrade', (request, client: Socket, head: Buffer) => {
    client.on('error', () => undefined)
    sockets.add(client).add(openUpgrade(request, client, head, target))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.closeAllConnections()
    server.close()
  })
  return {
    url,
    setVersion(next) {
      version = next
    },
  }
}

/** The events and comments, each with the empty line at its end. */
async function* readEvents(upstream: IncomingMessage): AsyncGenerator<string, void, undefined> {
  let rest = ''
  for await (const chunk of upstream.setEncoding('utf8') as AsyncIterable<string>) {
    const parts = `${rest}${chunk}`.split(/(?<=\n\n)/)
    rest = parts.at(-1)?.endsWith('\n\n') ? '' : (parts.pop() ?? '')
    yield* parts
  }
}

function changeEvent(event: string, { changeEvent, beforeEvent = '' }: Version): string {
  const name = /^event: (.*)$/m.exec(event)?.[1] ?? ''
  const changed = event.replace(/^data: (.*)$/m, (line, data: string) =>
    changeEvent === undefined ? line : `data: ${JSON.stringify(changeEvent(JSON.parse(data), name))}`,
  )
  return beforeEvent + changed
}
