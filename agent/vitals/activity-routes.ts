// GET /activity: how long the box has been idle, measured for the request.
import type { FastifyInstance } from 'fastify'
import type { Activity } from '../../shared/api/activity.ts'
import { addJsonRoute } from '../requests/json-routes.ts'

export function activityRoutes(
  app: FastifyInstance,
  { readActivity }: { readActivity(): Promise<Activity> },
): void {
  addJsonRoute(app, 'GET', '/activity', readActivity)
}
