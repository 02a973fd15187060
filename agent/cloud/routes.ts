// The route with which the coordinator brings the token and the profiles of the connected cloud roles to the box.
import type { FastifyInstance } from 'fastify'
import { addJsonRoute } from '../requests/json-routes.ts'
import { type CloudDeps, createCloudCredentials } from './credentials.ts'

export type { CloudDeps }

export function cloudRoutes(app: FastifyInstance, deps: CloudDeps): void {
  const credentials = createCloudCredentials(deps)
  addJsonRoute(app, 'PUT', '/cloud-credentials', ({ body }) => credentials.apply(body))
}
