// POST /mcp: one message of the Model Context Protocol, stateless.
import type { PublicRoute } from '../http/public-routes.ts'
import { checkRequest } from './check-request.ts'
import type { McpUrls, MessageServer } from './message-server.ts'

export function createMcpRoute(urls: McpUrls): { route: PublicRoute; settle(): Promise<void> } {
  let server: Promise<MessageServer> | undefined
  const load = async (): Promise<MessageServer> =>
    (await import('./message-server.ts')).createMessageServer(urls)
  return {
    route: {
      path: '/mcp',
      acceptsPost: true,
      isCompressed: true,
      async handler(request, reply) {
        const key = checkRequest(request.headers, [urls.public, urls.listener])
        server ??= load()
        return (await server).serve(request, reply, key)
      },
    },
    async settle() {
      await (await server)?.settle()
    },
  }
}
