// Registers the routes that need no API key: health checks, the OpenAPI document and the pages for browsers. They are not
// part of the OpenAPI document.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { registerBodyParsers } from './body.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Responds also while the coordinator drains. */
    health?: boolean
  }
}

/** Serves GET and HEAD. */
export type PublicRoute = {
  path: string
  /** The handler gets the POST requests of a form without fields too, and must call assertSameOrigin(). Default: false. */
  acceptsPost?: boolean
  /** Responds also while the coordinator drains. Default: false. */
  isHealthCheck?: boolean
  /** The handler compresses its content, see createContentHandler(). Default: false, each response is compressed. */
  isCompressed?: boolean
  /** The result is sent with status 200. A handler that sends the response itself returns `reply`. */
  handler(request: FastifyRequest, reply: FastifyReply): Promise<unknown>
}

export function registerPublicRoutes(app: FastifyInstance, routes: readonly PublicRoute[]): void {
  app.register(async (scope) => {
    registerBodyParsers(scope, 'control')
    for (const { path, acceptsPost = false, isHealthCheck = false, isCompressed = false, handler } of routes)
      scope.route({
        method: ['GET', 'HEAD', ...(acceptsPost ? ['POST' as const] : [])],
        url: path,
        config: { health: isHealthCheck },
        ...(isCompressed && { compress: false as const }),
        handler,
      })
  })
}
