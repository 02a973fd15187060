// The route with which the coordinator brings the token and the profiles of the connected cloud roles to the box.
import type { JsonRouter } from '../requests/json-routes.ts'
import type { CloudCredentialFiles } from './credentials.ts'

export function cloudRoutes(router: JsonRouter, credentials: Pick<CloudCredentialFiles, 'apply'>): void {
  router.add('PUT', '/cloud-credentials', ({ body }) => credentials.apply(body))
}
