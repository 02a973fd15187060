// Responses that are too large for a message of the tunnel. The coordinator fetches each one with GET /responses/{id}.
import type { FastifyInstance } from 'fastify'
import { createNoRouteError } from './json-routes.ts'

export type StoredResponses = {
  /** Returns the id. */
  add(body: string | Buffer): string
  /** Discards all. Call it when the connection closes on which the ids were sent: an agent has one at a time. */
  clear(): void
}

export function storedResponseRoutes(app: FastifyInstance): StoredResponses {
  const bodies = new Map<string, string | Buffer>()
  let lastId = 0
  app.get<{ Params: { id: string } }>(
    '/responses/:id',
    { exposeHeadRoute: false },
    async (request, reply) => {
      const { id } = request.params
      const body = bodies.get(id)
      if (body === undefined) throw createNoRouteError()
      bodies.delete(id)
      return reply.type('application/json').send(body)
    },
  )
  return {
    add(body) {
      const id = String(++lastId)
      bodies.set(id, body)
      return id
    },
    clear: () => bodies.clear(),
  }
}
