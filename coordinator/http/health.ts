// GET /healthz (liveness) and GET /readyz (readiness), for process supervisors and load balancers. No key needed.
import type { PublicRoute } from './public-routes.ts'

export type Health = {
  /** Why the coordinator should get no requests; null: it is ready. */
  getUnreadyReason(): Promise<'starting' | 'draining' | 'database' | 'lease' | null>
}

export const healthRoutes = (health: Health): PublicRoute[] => [
  { path: '/healthz', isHealthCheck: true, handler: async () => ({ ok: true }) },
  {
    path: '/readyz',
    isHealthCheck: true,
    async handler(_request, reply) {
      const reason = await health.getUnreadyReason()
      return reason === null ? { ok: true } : reply.code(503).send({ ok: false, reason })
    },
  },
]
