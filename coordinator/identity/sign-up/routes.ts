// The routes of agent accounts (spec §5.2, §5.3).
import {
  agentAccountCodeRequestSchema,
  agentAccountCodeSchema,
  agentAccountSchema,
  createAgentAccountRequestSchema,
  verifiedSchema,
} from '../../../shared/api/agent-accounts.ts'
import { confirmCodeRequestSchema } from '../../../shared/api/sessions.ts'
import { getClientAddress } from '../../http/client-address.ts'
import { type Route, routeWithoutCredential } from '../../http/route.ts'
import type { AgentAccounts } from './agent-accounts.ts'

export const agentAccountRoutes = ({ agentAccounts }: { agentAccounts: AgentAccounts }): Route[] => [
  routeWithoutCredential({
    id: 'agentAccounts.create',
    method: 'POST',
    path: '/agent-accounts',
    summary: 'Create an account for an agent',
    description:
      'Creates a workspace, its owner and an API key, and sends a code to the email address. Until the code is confirmed, the key is accepted only on GET /me; other routes respond with 403 verification_required. An account that is not verified in 7 days is deleted. Sign-up is closed (not_allowed) unless the operator has opened it with BOXWOOD_SIGNUP.',
    request: { body: createAgentAccountRequestSchema },
    responses: { 201: agentAccountSchema },
    errors: ['not_allowed', 'rate_limited'],
    async handler({ body, request, reply }) {
      reply.header('cache-control', 'no-store')
      return agentAccounts.create(body, getClientAddress(request))
    },
  }),
  routeWithoutCredential({
    id: 'agentAccounts.verify',
    method: 'POST',
    path: '/agent-accounts/verify',
    summary: 'Confirm the code of an agent account',
    description: 'Activates the key. The owner can then also sign in with the email address.',
    request: { body: confirmCodeRequestSchema },
    responses: { 200: verifiedSchema },
    errors: ['invalid_code', 'rate_limited'],
    async handler({ body, request }) {
      await agentAccounts.verify(body, getClientAddress(request))
      return { verified: true }
    },
  }),
  routeWithoutCredential({
    id: 'agentAccounts.sendCode',
    method: 'POST',
    path: '/agent-accounts/code',
    summary: 'Send another code for an agent account',
    description:
      'The response is the same for the id of an unknown and of a verified key, for which no code is sent.',
    request: { body: agentAccountCodeRequestSchema },
    responses: { 202: agentAccountCodeSchema },
    errors: ['rate_limited'],
    handler: ({ body, request }) => agentAccounts.requestCode(body.keyId, getClientAddress(request)),
  }),
]
