// Serves messages of the Model Context Protocol, each alone. Imported with the first one: most coordinators do not use the modules,
// which take memory.
import { once } from 'node:events'
import { Readable } from 'node:stream'
import type { ReadableStream as NodeStream } from 'node:stream/web'
import { createMcpHandler } from '@modelcontextprotocol/server'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Boxwood } from '../../client/boxwood.ts'
import { BoxwoodError } from '../../client/http/errors.ts'
import { fetchTransport } from '../../client/http/fetch-transport.ts'
import type { Transport } from '../../client/http/transport.ts'
import { Context } from '../../mcp/context.ts'
import { ACCOUNT_QUERY } from '../../mcp/grants.ts'
import { createServerFactory } from '../../mcp/server.ts'
import { ApiError } from '../../shared/errors.ts'
import { VERSION } from '../../shared/version.ts'

export type McpUrls = {
  public: string
  /** Where programs on this machine reach the coordinator. */
  listener: string
}

/** Those of the protocol. */
const HEADERS = /^(content-type|accept|mcp-.+)$/

export type MessageServer = {
  serve(request: FastifyRequest, reply: FastifyReply, key: string): Promise<FastifyReply>
  /** Resolves when no call runs. */
  settle(): Promise<void>
}

export function createMessageServer(urls: McpUrls): MessageServer {
  const contexts = new Set<Context>()

  async function serve(request: FastifyRequest, reply: FastifyReply, key: string): Promise<FastifyReply> {
    const boxwood = new Boxwood({
      url: urls.listener,
      apiKey: key,
      transport: createLocalTransport(urls),
    })
    const account = await boxwood.routes.account.get(ACCOUNT_QUERY).catch((error: unknown) => {
      if (!(error instanceof BoxwoodError) || error.status === 0 || error.status >= 500) throw error
      throw new ApiError(error.status === 403 ? 'not_allowed' : 'unauthorized', error.message)
    })
    const context = new Context(boxwood, {})
    contexts.add(context)
    const handler = createMcpHandler(createServerFactory(context, VERSION, account))
    void once(reply.raw, 'close')
      .then(() => handler.close())
      .then(() => context.settle())
      .finally(() => contexts.delete(context))
    const response = await handler.fetch(toWebRequest(request, reply, urls.public), {
      parsedBody: request.body,
    })
    for (const [name, value] of response.headers) reply.header(name, value)
    return reply
      .code(response.status)
      .send(response.body === null ? '' : Readable.fromWeb(response.body as unknown as NodeStream))
  }

  return {
    serve,
    async settle() {
      await Promise.all([...contexts].map((context) => context.settle()))
    },
  }
}

/** The signal is aborted when the client disconnects before the response is complete. */
function toWebRequest({ method, headers, body }: FastifyRequest, reply: FastifyReply, url: string): Request {
  const controller = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort()
  })
  return new Request(`${url}/mcp`, {
    method,
    headers: Object.entries(headers).flatMap(([name, value]): [string, string][] =>
      HEADERS.test(name) && typeof value === 'string' ? [[name, value]] : [],
    ),
    signal: controller.signal,
    ...(method === 'POST' && { body: JSON.stringify(body ?? null) }),
  })
}

/** The public URL may lead through a proxy that this machine does not reach. */
const createLocalTransport = (urls: McpUrls): Transport => ({
  send: (request) =>
    fetchTransport.send({
      ...request,
      url: request.url.startsWith(`${urls.public}/`)
        ? urls.listener + request.url.slice(urls.public.length)
        : request.url,
    }),
})
