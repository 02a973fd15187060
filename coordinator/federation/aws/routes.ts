// The routes of AWS roles, and of the links that connect one (spec §4.6).
import { z } from 'zod'
import {
  awsConnectCallbackSchema,
  awsConnectResultSchema,
  awsConnectSchema,
  awsRoleListSchema,
  awsRoleResponseSchema,
  CONNECT_ROLE_ERROR_CODES,
  cancelledSchema,
  connectRoleRequestSchema,
  createAwsConnectRequestSchema,
  revokedSchema,
} from '../../../shared/api/federation.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { byKey } from '../../http/access.ts'
import { type Route, route, routeWithoutCredential } from '../../http/route.ts'
import type { RoleLinks } from './role-links.ts'
import type { AwsRoles } from './roles.ts'

const READ = byKey('workspace', 'read', { roles: 'not_contractor' })
const WRITE = byKey('workspace', 'write', { roles: 'owner' })
const roleId = z.object({ id: z.string().meta({ description: 'the id of a role, such as awr_…' }) })
const connectId = z.object({ id: z.string().meta({ description: 'the id of a link, such as awc_…' }) })

export const awsRoleRoutes = (roles: AwsRoles): Route[] => [
  route({
    id: 'awsRoles.list',
    method: 'GET',
    path: '/aws-roles',
    access: READ,
    summary: 'List the AWS roles that boxes can assume',
    description:
      'Boxes assume these roles without a stored key: each box has a file with a token that AWS accepts instead, and a profile per role in `~/.aws/config`. Restricted boxes get none. A box with an environment gets them if the channel `cloud` of the environment is on; without an environment, only boxes of owners.',
    responses: { 200: awsRoleListSchema },
    handler: ({ actor }) => roles.list(actor),
  }),
  route({
    id: 'awsRoles.create',
    method: 'POST',
    path: '/aws-roles',
    access: WRITE,
    summary: 'Connect an AWS role',
    description:
      'The role must trust the issuer with the audience and subjectPattern of GET /aws-roles. It is verified at once: verifyError says why AWS refuses. Boxes get the profile in both cases. The response is 200 when the role is connected already.',
    request: { body: connectRoleRequestSchema },
    fieldErrorCodes: CONNECT_ROLE_ERROR_CODES,
    responses: { 201: awsRoleResponseSchema },
    otherStatuses: { 200: 'The role was connected already. Nothing has changed.' },
    errors: [
      ...(['already_connected', 'profile_taken', 'aws_roles_limit'] as const),
      ...(['workspace_closing', 'rate_limited', 'aws_federation_disabled'] as const),
    ],
    async handler({ actor, body, reply }) {
      const { role, isNew } = await roles.connect(actor, body)
      return isNew ? { role } : reply.code(200).send({ role })
    },
  }),
  route({
    id: 'awsRoles.verify',
    method: 'POST',
    path: '/aws-roles/:id/verify',
    access: WRITE,
    summary: 'Verify that the workspace can assume an AWS role',
    request: { params: roleId },
    responses: { 200: awsRoleResponseSchema },
    errors: ['rate_limited', 'aws_federation_disabled'],
    handler: async ({ actor, params }) => ({ role: await roles.verify(actor, params.id) }),
  }),
  route({
    id: 'awsRoles.delete',
    method: 'DELETE',
    path: '/aws-roles/:id',
    access: WRITE,
    summary: 'Disconnect an AWS role',
    description:
      'Connected boxes drop the profile at once, other ones when they start. A token that a box has is valid for up to an hour, and credentials that AWS has issued until they expire: change the trust policy of the role in AWS to end them earlier.',
    request: { params: roleId },
    responses: { 200: revokedSchema },
    async handler({ actor, params }) {
      await roles.disconnect(actor, params.id)
      return { revoked: true }
    },
  }),
]

export const roleLinkRoutes = (links: RoleLinks): Route[] => [
  route({
    id: 'awsRoles.createLink',
    method: 'POST',
    path: '/aws-connect',
    access: WRITE,
    summary: 'Create a link that creates and connects an AWS role',
    description: `The link opens a filled-in stack in the console of AWS, in the account that is signed in there. It works once, within ${LIMITS.awsConnectSeconds / 60} minutes, and cancels the previous link of the workspace. The role is connected when AWS has confirmed that the workspace can assume it.`,
    request: { body: createAwsConnectRequestSchema },
    fieldErrorCodes: { profile: 'invalid_profile' },
    responses: { 201: awsConnectSchema },
    errors: [
      ...(['profile_taken', 'aws_roles_limit', 'workspace_closing'] as const),
      ...(['aws_federation_disabled', 'aws_quick_connect_unavailable'] as const),
    ],
    handler: ({ actor, body }) => links.create(actor, body),
  }),
  route({
    id: 'awsRoles.cancelLink',
    method: 'DELETE',
    path: '/aws-connect/:id',
    access: WRITE,
    summary: 'Cancel a link that connects an AWS role',
    request: { params: connectId },
    responses: { 200: cancelledSchema },
    errorDescriptions: { not_found: 'The link was used, has expired or was cancelled.' },
    async handler({ actor, params }) {
      await links.cancel(actor, params.id)
      return { cancelled: true }
    },
  }),
  routeWithoutCredential({
    id: 'awsRoles.completeLink',
    method: 'POST',
    path: '/aws-connect/callback',
    summary: 'Connect the role that the stack of a link has created',
    description:
      'The stack sends this request, with the secret of the link. While connected is false, AWS does not let the workspace assume the role, and the link stays valid. A repeated request with the role that the link has connected gets the same response.',
    request: { body: awsConnectCallbackSchema },
    fieldErrorCodes: { roleArn: 'invalid_role_arn' },
    responses: { 200: awsConnectResultSchema },
    errors: ['not_found', 'rate_limited'],
    handler: ({ body }) => links.complete(body),
  }),
]
