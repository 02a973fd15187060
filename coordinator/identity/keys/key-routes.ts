// Routes of API keys (spec §5.2, §5.7): only dashboard sessions can use them.
import { z } from 'zod'
import {
  createKeyRequestSchema,
  keyListSchema,
  keyResponseSchema,
  keySecretResponseSchema,
  LIST_KEYS_ERROR_CODES,
  listKeysQuerySchema,
  updateKeyRequestSchema,
} from '../../../shared/api/keys.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { bySession } from '../../http/access.ts'
import { idParam, type Route, route } from '../../http/route.ts'
import type { KeyService } from './key-service.ts'

const keyId = z.object({ id: idParam })

export const keyRoutes = ({ keys }: { keys: KeyService }): Route[] => [
  route({
    id: 'keys.list',
    method: 'GET',
    path: '/keys',
    access: bySession(),
    summary: 'List API keys, newest first',
    description:
      'Returns the keys of the caller; to an owner, all keys of the workspace. Expired keys are included. Returns all keys, or one page with limit.',
    request: { query: listKeysQuerySchema },
    fieldErrorCodes: LIST_KEYS_ERROR_CODES,
    responses: { 200: keyListSchema },
    handler: ({ actor, query }) => keys.list(actor, query),
  }),
  route({
    id: 'keys.create',
    method: 'POST',
    path: '/keys',
    access: bySession(),
    summary: 'Create an API key',
    description: `The key acts as the caller, with the role that the caller has at the time of each request. The response is the only one that contains the secret. Above ${LIMITS.keysPerUser} keys of a user that are not revoked: not_allowed.`,
    request: { body: createKeyRequestSchema },
    responses: { 201: keySecretResponseSchema },
    errors: ['not_owner', 'not_found', 'workspace_closing'],
    handler: ({ actor, body }) => keys.create(actor, body),
  }),
  route({
    id: 'keys.get',
    method: 'GET',
    path: '/keys/:id',
    access: bySession(),
    summary: 'Get an API key',
    description: 'Returns revoked keys too.',
    request: { params: keyId },
    responses: { 200: keyResponseSchema },
    handler: async ({ actor, params }) => ({ key: await keys.get(actor, params.id) }),
  }),
  route({
    id: 'keys.update',
    method: 'PATCH',
    path: '/keys/:id',
    access: bySession(),
    summary: 'Change the name, expiry or limits of an API key',
    description:
      'Limits apply from the next request with the key; open streams that the key may no longer use end within seconds. A key that is revoked or has expired cannot be changed: 404.',
    request: { params: keyId, body: updateKeyRequestSchema },
    responses: { 200: keyResponseSchema },
    handler: async ({ actor, params, body }) => ({ key: await keys.update(actor, params.id, body) }),
  }),
  route({
    id: 'keys.rotate',
    method: 'POST',
    path: '/keys/:id/rotate',
    access: bySession(),
    summary: 'Replace the secret of an API key',
    description:
      'The previous secret stops working at once: its next request gets 401 unauthorized. To change the secret without an interruption, create a second key, use it everywhere, and revoke this key. The expiry of a machine key starts again; another expiry does not change. A key that is revoked or has expired cannot be rotated: 404. A key of another user cannot be rotated either, because the new secret acts as that user: 403 not_allowed.',
    request: { params: keyId },
    responses: { 200: keySecretResponseSchema },
    handler: ({ actor, params }) => keys.rotate(actor, params.id),
  }),
  route({
    id: 'keys.revoke',
    method: 'DELETE',
    path: '/keys/:id',
    access: bySession(),
    summary: 'Revoke an API key',
    description:
      'The next request with the key gets 401 unauthorized, and its open streams end within seconds. Revoking it again has no effect. A revoked key cannot be used again.',
    request: { params: keyId },
    responses: { 204: null },
    handler: ({ actor, params }) => keys.revoke(actor, params.id),
  }),
]
