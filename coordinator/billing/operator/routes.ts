// Routes for operators: the owners of the coordinator's first workspace.
import { z } from 'zod'
import {
  creditRequestSchema,
  creditResponseSchema,
  holdRequestSchema,
  LIST_WORKSPACES_ERROR_CODES,
  ledgerCheckQuerySchema,
  ledgerCheckResponseSchema,
  listWorkspacesQuerySchema,
  operatorWorkspaceListSchema,
  operatorWorkspaceResponseSchema,
} from '../../../shared/api/operator.ts'
import { byKey } from '../../http/access.ts'
import { type Route, route } from '../../http/route.ts'
import type { OperatorService } from './service.ts'

const workspaceId = z.object({ id: z.string().meta({ description: 'the id of a workspace, such as ws_…' }) })

const OPERATORS =
  'For owners of the first workspace of the coordinator; others get not_owner. While billing is off, the answer is bad_request.'

export const operatorRoutes = ({ operator }: { operator: OperatorService }): Route[] => [
  route({
    method: 'GET',
    path: '/operator/workspaces',
    access: byKey('workspace', 'read', { roles: 'owner' }),
    summary: 'List the workspaces of the coordinator, newest first',
    description: OPERATORS,
    request: { query: listWorkspacesQuerySchema },
    fieldErrorCodes: LIST_WORKSPACES_ERROR_CODES,
    responses: { 200: operatorWorkspaceListSchema },
    handler: ({ actor, query }) => operator.list(actor, query),
  }),
  route({
    method: 'POST',
    path: '/operator/workspaces/:id/credit',
    access: byKey('workspace', 'write', { roles: 'owner' }),
    summary: 'Add credit to a workspace',
    description: `${OPERATORS} A credit that is not free is a payment that was received outside of Boxwood: it ends the limits of free credit, and a pause for CPU on free credit. An amount below 0 is an adjustment.`,
    request: { params: workspaceId, body: creditRequestSchema },
    responses: { 200: creditResponseSchema },
    errors: ['idempotency_key_reused'],
    errorDescriptions: {
      idempotency_key_reused: 'The cause is that of another amount or kind of credit. Use another cause.',
    },
    handler: ({ actor, params, body }) => operator.credit(actor, params.id, body),
  }),
  route({
    method: 'PUT',
    path: '/operator/workspaces/:id/hold',
    access: byKey('workspace', 'write', { roles: 'owner' }),
    summary: 'Pause a workspace',
    description: `${OPERATORS} Suspends the running boxes of the workspace. Requests that start or create a box answer workspace_held until the pause is removed. A repeated request replaces the reason.`,
    request: { params: workspaceId, body: holdRequestSchema },
    responses: { 200: operatorWorkspaceResponseSchema },
    handler: async ({ actor, params, body }) => ({
      workspace: await operator.setHold(actor, params.id, body.reason),
    }),
  }),
  route({
    method: 'DELETE',
    path: '/operator/workspaces/:id/hold',
    access: byKey('workspace', 'write', { roles: 'owner' }),
    summary: 'End the pause of a workspace',
    description: `${OPERATORS} The boxes stay suspended until they are woken. No effect on a workspace that is not paused.`,
    request: { params: workspaceId },
    responses: { 204: null },
    handler: async ({ actor, params }) => {
      await operator.setHold(actor, params.id, null)
    },
  }),
  route({
    method: 'GET',
    path: '/operator/ledger-check',
    access: byKey('workspace', 'read', { roles: 'owner' }),
    summary: 'Compare balances and totals with the ledger',
    description: `${OPERATORS} Computes each balance, and the usage of each month, again from the entries of the ledger. Reads all of them.`,
    request: { query: ledgerCheckQuerySchema },
    responses: { 200: ledgerCheckResponseSchema },
    errors: ['not_found'],
    handler: ({ actor, query, request }) => operator.checkLedger(actor, query.workspace, request.signal),
  }),
]
