// The route GET /team/status (spec §4.13).
import { teamStatusSchema } from '../../shared/api/team.ts'
import { byKey } from '../http/access.ts'
import { sendJson } from '../http/json-pages.ts'
import { type Route, route } from '../http/route.ts'
import type { TeamService } from './service.ts'

export const teamRoutes = ({ team }: { team: TeamService }): Route[] => [
  route({
    id: 'team.getStatus',
    method: 'GET',
    path: '/team/status',
    summary: 'Get what the members and boxes of the workspace do',
    description:
      'Returns the boxes that are not deleted, the members and the newest audit events. A contractor gets only their own boxes and their events, and no members.',
    access: byKey('workspace', 'read'),
    responses: { 200: teamStatusSchema },
    handler: async ({ actor, reply }) => sendJson(reply, await team.load(actor)),
  }),
]
