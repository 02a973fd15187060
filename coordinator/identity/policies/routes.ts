// Routes of the policies of a workspace (spec §4.11).
import { patchPolicyRequestSchema, policyResponseSchema } from '../../../shared/api/policies.ts'
import { byKey, bySession } from '../../http/access.ts'
import { type Route, route } from '../../http/route.ts'
import type { PolicyService } from './service.ts'

export const policyRoutes = ({ policies }: { policies: PolicyService }): Route[] => [
  route({
    id: 'policies.get',
    method: 'GET',
    path: '/workspace/policies',
    access: byKey('workspace', 'read', { roles: 'not_contractor' }),
    summary: 'Get the policies of the workspace',
    responses: { 200: policyResponseSchema },
    handler: ({ actor }) => policies.get(actor),
  }),
  route({
    id: 'policies.update',
    method: 'PATCH',
    path: '/workspace/policies',
    access: bySession('owner'),
    summary: 'Change policies of the workspace',
    description:
      'Changes the policies that the body names, and no others. `field` of the error invalid_policy is the name of the policy.',
    request: { body: patchPolicyRequestSchema },
    bodyErrorCode: 'invalid_policy',
    responses: { 200: policyResponseSchema },
    errors: ['workspace_closing'],
    handler: ({ actor, body }) => policies.update(actor, body),
  }),
]
