// The routes of secrets, their grants and mounts (spec §4.10).
import { z } from 'zod'
import { boxIdParamSchema } from '../../shared/api/boxes.ts'
import {
  createSecretRequestSchema,
  granteeSchema,
  listSecretsQuerySchema,
  type MountSecretRequest,
  mountSecretRequestSchema,
  patchSecretRequestSchema,
  secretGrantResponseSchema,
  secretListSchema,
  secretMountListSchema,
  secretMountResponseSchema,
  secretResponseSchema,
  secretUsageSchema,
} from '../../shared/api/secrets.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { SecretValue } from '../base/sealing/secret-value.ts'
import { assertAccess, byKey } from '../http/access.ts'
import { joinFields, sendJson, stringifyPages } from '../http/json-pages.ts'
import { idParam, type Route, route } from '../http/route.ts'
import type { BoxMountService, MountInput } from './box-mounts.ts'
import type { GrantService } from './grants.ts'
import type { SecretService } from './service.ts'

const roles = { roles: 'not_contractor' } as const
const READ_SECRETS = byKey('workspace', 'read', roles)
const WRITE_SECRETS = byKey('workspace', 'write', roles)

const secretId = z.object({ id: idParam })
const boxId = z.object({ id: boxIdParamSchema })
const bodyLimit = LIMITS.secretBodyBytes
const NAME_TAKEN = 'The workspace has a secret of this name.'
const SECRET_NAME = 'name must be uppercase letters, digits and underscores.'

export const secretRoutes = ({
  secrets,
  grants,
}: {
  secrets: SecretService
  grants: GrantService
}): Route[] => [
  route({
    id: 'secrets.list',
    method: 'GET',
    path: '/secrets',
    access: READ_SECRETS,
    summary: 'List the secrets of the workspace',
    description: 'Newest first. No response has a value.',
    request: { query: listSecretsQuerySchema },
    responses: { 200: secretListSchema },
    errors: ['not_found'],
    errorDescriptions: { not_found: 'box is not the id of a box that exists.' },
    async handler({ actor, query, reply }) {
      const list = await stringifyPages(await secrets.listPages(actor, query.box))
      return sendJson(reply, joinFields({ secrets: list }))
    },
  }),
  route({
    id: 'secrets.create',
    method: 'POST',
    path: '/secrets',
    access: WRITE_SECRETS,
    summary: 'Create a secret',
    description: `A box gets a placeholder instead of the value: the coordinator puts the value into HTTPS requests that the box sends to one of the hosts, in the headers, or in the parts of the request that are named by in. A workspace has at most ${LIMITS.secrets} secrets. Without grants, every box of the workspace that is not restricted may use the secret.`,
    request: { body: createSecretRequestSchema },
    bodyLimit,
    fieldErrorCodes: { name: 'invalid_name', hosts: 'invalid_host' },
    responses: { 201: secretResponseSchema },
    errors: [
      ...(['invalid_name', 'invalid_host', 'secret_limit', 'name_taken'] as const),
      ...(['not_found', 'member_not_found', 'workspace_closing'] as const),
    ],
    errorDescriptions: {
      invalid_name: SECRET_NAME,
      name_taken: NAME_TAKEN,
      not_found: 'The box of a grant does not exist.',
    },
    handler: async ({ actor, body: { value, ...input } }) => ({
      secret: await secrets.create(actor, { ...input, value: new SecretValue(value) }),
    }),
  }),
  route({
    id: 'secrets.update',
    method: 'PATCH',
    path: '/secrets/:id',
    access: WRITE_SECRETS,
    summary: 'Change a secret',
    description:
      'A new value keeps the placeholder, and is used for the next request of each box. A new host discloses the value to this host. A new location, such as the query, is one that servers may log. The scope `workspace` removes the grants, so that every box that is not restricted may use the secret. Open connections to a host that the secret does not cover any more are closed at once.',
    request: { params: secretId, body: patchSecretRequestSchema },
    bodyLimit,
    fieldErrorCodes: { hosts: 'invalid_host' },
    responses: { 200: secretResponseSchema },
    errors: ['invalid_host', 'not_found'],
    handler: async ({ actor, params, body: { value, ...patch } }) => ({
      secret: await secrets.patch(actor, params.id, {
        ...patch,
        ...(value !== undefined && { value: new SecretValue(value) }),
      }),
    }),
  }),
  route({
    id: 'secrets.delete',
    method: 'DELETE',
    path: '/secrets/:id',
    access: WRITE_SECRETS,
    summary: 'Delete a secret',
    description:
      'Deletes its mounts, grants and usage too, and closes the connections that boxes have open to its hosts.',
    request: { params: secretId },
    responses: { 204: null },
    errors: ['not_found'],
    async handler({ actor, params, reply }) {
      await secrets.remove(actor, params.id)
      return reply.code(204).send()
    },
  }),
  route({
    id: 'secrets.grant',
    method: 'POST',
    path: '/secrets/:id/grants',
    access: WRITE_SECRETS,
    summary: 'Grant a secret to a box or to the boxes of a member',
    description: `The first grant limits the secret: it is unmounted from every box that no grant covers. A secret has at most ${LIMITS.secretGrants} grants. An existing grant is returned.`,
    request: { params: secretId, body: granteeSchema },
    bodyLimit,
    responses: { 201: secretGrantResponseSchema },
    errors: ['not_found', 'member_not_found', 'workspace_closing'],
    errorDescriptions: { not_found: 'The secret or the box does not exist.' },
    handler: async ({ actor, params, body }) => ({ grant: await grants.add(actor, params.id, body) }),
  }),
  route({
    id: 'secrets.removeGrant',
    method: 'DELETE',
    path: '/secrets/:id/grants/:grantId',
    access: WRITE_SECRETS,
    summary: 'Remove a grant of a secret',
    description:
      'Unmounts the secret from the boxes that no other grant covers, and closes their open connections to its hosts. The scope of the secret stays `granted`: without its last grant, no box may use it, until a grant is added or PATCH /secrets/{id} with the scope `workspace` opens it.',
    request: { params: z.object({ id: idParam, grantId: z.string() }) },
    responses: { 204: null },
    errors: ['not_found'],
    errorDescriptions: { not_found: 'The secret or the grant does not exist.' },
    async handler({ actor, params, reply }) {
      await grants.remove(actor, params.id, params.grantId)
      return reply.code(204).send()
    },
  }),
  route({
    id: 'secrets.listUsage',
    method: 'GET',
    path: '/secrets/:id/usage',
    access: READ_SECRETS,
    summary: 'List where a secret has been used',
    description: 'One row per box and host. The rows of a box are deleted with the record of the box.',
    request: { params: secretId },
    responses: { 200: secretUsageSchema },
    errors: ['not_found'],
    handler: async ({ actor, params }) => ({ uses: await secrets.listUses(actor, params.id) }),
  }),
]

export const boxSecretRoutes = ({ mounts }: { mounts: BoxMountService }): Route[] => [
  route({
    id: 'mounts.list',
    method: 'GET',
    path: '/boxes/:id/secrets',
    atOwnerOf: 'id',
    access: byKey('boxes', 'read', roles),
    summary: 'List the secrets of a box',
    request: { params: boxId },
    responses: { 200: secretMountListSchema },
    handler: ({ actor, params }) => mounts.list(actor, params.id),
  }),
  route({
    id: 'mounts.create',
    method: 'POST',
    path: '/boxes/:id/secrets',
    atOwnerOf: 'id',
    access: byKey('boxes', 'write', roles),
    summary: 'Mount a secret on a box',
    description:
      'The variable of the box gets the placeholder of the secret. New commands, prompts and terminals have it. With name and value, a secret is created, granted to this box only and mounted: this needs an API key with write access to the workspace that is not limited to some boxes.',
    request: { params: boxId, body: mountSecretRequestSchema },
    bodyLimit,
    fieldErrorCodes: { name: 'invalid_name', hosts: 'invalid_host', envName: 'invalid_env_name' },
    responses: { 201: secretMountResponseSchema },
    errors: [
      ...(['invalid_name', 'invalid_host', 'invalid_env_name', 'secret_limit', 'name_taken'] as const),
      ...(['secret_not_granted', 'box_restricted', 'env_name_taken', 'workspace_closing'] as const),
    ],
    errorDescriptions: { invalid_name: SECRET_NAME, name_taken: NAME_TAKEN },
    async handler({ actor, params, body }) {
      const input = toMountInput(body)
      if ('created' in input) assertAccess(actor, WRITE_SECRETS, 'control')
      return { mount: await mounts.mount(actor, params.id, input) }
    },
  }),
  route({
    id: 'mounts.delete',
    method: 'DELETE',
    path: '/boxes/:id/secrets/:mountId',
    atOwnerOf: 'id',
    access: byKey('boxes', 'write', roles),
    summary: 'Unmount a secret from a box',
    description: 'Closes the connections that the box has open to the hosts of the secret at once.',
    request: { params: z.object({ id: boxIdParamSchema, mountId: z.string() }) },
    responses: { 204: null },
    async handler({ actor, params, reply }) {
      await mounts.unmount(actor, params.id, params.mountId)
      return reply.code(204).send()
    },
  }),
]

/** @throws ApiError bad_request for fields that exclude each other */
function toMountInput({ envName, secretId, ...fields }: MountSecretRequest): MountInput {
  const { name, value, hosts, description, in: locations } = fields
  if (secretId !== undefined && Object.keys(fields).length === 0) return { envName, secretId }
  if (secretId !== undefined || name === undefined || value === undefined)
    throw new ApiError(
      'bad_request',
      'body must have either secretId and envName, or name, value and envName, and optionally hosts, in and description',
    )
  return { envName, created: { name, value: new SecretValue(value), hosts, in: locations, description } }
}
