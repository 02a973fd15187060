// Routes of the agents of a workspace.
import {
  agentListSchema,
  patchRolloutRequestSchema,
  rolloutResponseSchema,
} from '../../../shared/api/agents.ts'
import { byKey } from '../../http/access.ts'
import { sendJson } from '../../http/json-pages.ts'
import { type Route, route } from '../../http/route.ts'
import type { AgentService } from './service.ts'

export const agentRoutes = ({ agents }: { agents: AgentService }): Route[] => [
  route({
    id: 'agents.list',
    method: 'GET',
    path: '/agents',
    access: byKey('workspace', 'read', { roles: 'not_contractor' }),
    summary: 'List the agents of the boxes with their versions, and get the rollout of new builds',
    responses: { 200: agentListSchema },
    handler: async ({ actor, reply }) => sendJson(reply, await agents.list(actor)),
  }),
  route({
    id: 'agents.updateRollout',
    method: 'PATCH',
    path: '/agents/rollout',
    access: byKey('workspace', 'write', { roles: 'owner' }),
    summary: 'Change which agents get new builds, or pause the upgrades',
    description:
      'A smaller share or a pause does not undo upgrades. `paused: false` also offers builds again that have failed on a box.',
    request: { body: patchRolloutRequestSchema },
    responses: { 200: rolloutResponseSchema },
    errors: ['workspace_closing'],
    handler: ({ actor, body }) => agents.updateRollout(actor, body),
  }),
]
