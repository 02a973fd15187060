// GET /activity: how long the box has been idle, measured for the request.
import type { Activity } from '../../shared/api/activity.ts'
import type { JsonRouter } from '../requests/json-routes.ts'

export function activityRoutes(
  router: JsonRouter,
  { readActivity }: { readActivity(): Promise<Activity> },
): void {
  router.add('GET', '/activity', readActivity)
}
