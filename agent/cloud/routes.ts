// The route with which the coordinator brings the token and the profiles of the connected cloud roles to the box.
import type { FastifyInstance } from 'fastify'
import { addJsonRoute } from '../requests/json-routes.ts'
import type { CloudCredentialFiles } from './credentials.ts'

export function cloudRoutes(app: FastifyInstance, credentials: Pick<CloudCredentialFiles, 'apply'>): void {
  addJsonRoute(app, 'PUT', '/cloud-credentials', ({ body }) => credentials.apply(body))
}
