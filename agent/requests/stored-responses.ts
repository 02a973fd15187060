// Responses that are too large for a message of the tunnel. The coordinator fetches each one with GET /responses/{id}.
import type { FastifyInstance } from 'fastify'
import { createNoRouteError } from './json-routes.ts'

export type StoredResponses = {
  /** @param id of the request. An agent has one connection at a time, so ids are unique. */
  set(id: number, body: string | Buffer): void
  delete(id: number): void
  /** Call it when the connection closes. */
  clear(): void
}

export function storedResponseRoutes(app: FastifyInstance): StoredResponses {
  const bodies = new Map<number, string | Buffer>()
  app.get<{ Params: { id: string } }>(
    '/responses/:id',
    { exposeHeadRoute: false },
    async (request, reply) => {
      const id = Number(request.params.id)
      const body = bodies.get(id)
      if (body === undefined) throw createNoRouteError()
      bodies.delete(id)
      return reply.type('application/json').send(body)
    },
  )
  return {
    set: (id, body) => void bodies.set(id, body),
    delete: (id) => void bodies.delete(id),
    clear: () => bodies.clear(),
  }
}
