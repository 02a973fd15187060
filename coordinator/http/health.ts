// GET /healthz (liveness) and GET /readyz (readiness), for process supervisors and load balancers. No key needed.
import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Responds also while the coordinator drains. */
    health?: boolean
  }
}

export type Health = {
  /** Why the coordinator should get no requests; null: it is ready. */
  getUnreadyReason(): Promise<'starting' | 'draining' | 'database' | null>
}

export function registerHealthRoutes(app: FastifyInstance, health: Health): void {
  const config = { health: true }
  app.route({ method: ['GET', 'HEAD'], url: '/healthz', config, handler: async () => ({ ok: true }) })
  app.route({
    method: ['GET', 'HEAD'],
    url: '/readyz',
    config,
    async handler(_request, reply) {
      const reason = await health.getUnreadyReason()
      return reason === null ? { ok: true } : reply.code(503).send({ ok: false, reason })
    },
  })
}
