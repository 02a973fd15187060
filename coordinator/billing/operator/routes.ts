// Routes for operators.
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
import { byOperator } from '../../http/access.ts'
import { type Route, route } from '../../http/route.ts'
import type { OperatorService } from './service.ts'

const workspaceId = z.object({ id: z.string().meta({ description: 'the id of a workspace, such as ws_…' }) })

const WITH_BILLING = 'While billing is off, the answer is bad_request.'

export const operatorRoutes = ({ operator }: { operator: OperatorService }): Route[] => [
  route({
    id: 'operator.listWorkspaces',
    method: 'GET',
    path: '/operator/workspaces',
    access: byOperator(),
    summary: 'List the workspaces of the coordinator, newest first',
    description: WITH_BILLING,
    request: { query: listWorkspacesQuerySchema },
    fieldErrorCodes: LIST_WORKSPACES_ERROR_CODES,
    responses: { 200: operatorWorkspaceListSchema },
    handler: ({ query }) => operator.list(query),
  }),
  route({
    id: 'operator.addCredit',
    method: 'POST',
    path: '/operator/workspaces/:id/credit',
    access: byOperator(),
    summary: 'Add credit to a workspace',
    description: `${WITH_BILLING} A credit that is not free is a payment that was received outside of Boxwood: it ends the limits of free credit, and a pause for CPU on free credit. An amount below 0 is an adjustment.`,
    request: { params: workspaceId, body: creditRequestSchema },
    responses: { 200: creditResponseSchema },
    errors: ['idempotency_key_reused'],
    errorDescriptions: {
      idempotency_key_reused: 'The cause is that of another amount or kind of credit. Use another cause.',
    },
    handler: ({ actor, params, body }) => operator.credit(actor, params.id, body),
  }),
  route({
    id: 'operator.hold',
    method: 'PUT',
    path: '/operator/workspaces/:id/hold',
    access: byOperator(),
    summary: 'Pause a workspace',
    description: `${WITH_BILLING} Suspends the running boxes of the workspace. Requests that start or create a box answer workspace_held until the pause is removed. A repeated request replaces the reason.`,
    request: { params: workspaceId, body: holdRequestSchema },
    responses: { 200: operatorWorkspaceResponseSchema },
    handler: async ({ actor, params, body }) => ({
      workspace: await operator.setHold(actor, params.id, body.reason),
    }),
  }),
  route({
    id: 'operator.release',
    method: 'DELETE',
    path: '/operator/workspaces/:id/hold',
    access: byOperator(),
    summary: 'End the pause of a workspace',
    description: `${WITH_BILLING} The boxes stay suspended until they are woken. No effect on a workspace that is not paused.`,
    request: { params: workspaceId },
    responses: { 204: null },
    handler: async ({ actor, params }) => {
      await operator.setHold(actor, params.id, null)
    },
  }),
  route({
    id: 'operator.checkLedger',
    method: 'GET',
    path: '/operator/ledger-check',
    access: byOperator(),
    summary: 'Compare balances and totals with the ledger',
    description: `${WITH_BILLING} Computes each balance, and the usage of each month, again from the entries of the ledger. Reads all of them.`,
    request: { query: ledgerCheckQuerySchema },
    responses: { 200: ledgerCheckResponseSchema },
    errors: ['not_found'],
    handler: ({ query, request }) => operator.checkLedger(query.workspace, request.signal),
  }),
]
