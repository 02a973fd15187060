// What a process supervisor and a load balancer ask: is it alive, and should it get requests. No key needed.
import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answered while the coordinator drains, too. */
    health?: boolean
  }
}

export type Health = {
  /** Why it should get no requests, or null when it should. */
  unready(): Promise<'starting' | 'draining' | 'database' | null>
}

export function mountHealth(app: FastifyInstance, health: Health): void {
  const config = { health: true }
  app.route({ method: ['GET', 'HEAD'], url: '/healthz', config, handler: async () => ({ ok: true }) })
  app.route({
    method: ['GET', 'HEAD'],
    url: '/readyz',
    config,
    async handler(_request, reply) {
      const reason = await health.unready()
      return reason === null ? { ok: true } : reply.code(503).send({ ok: false, reason })
    },
  })
}
