// Secrets, grants and mounts of a fake coordinator (spec §4.10).
import { randomBytes } from 'node:crypto'
import type { MountList } from '../../cli/secrets/mounts.ts'
import {
  createSecretRequestSchema,
  type Grantee,
  granteeSchema,
  mountSecretRequestSchema,
  patchSecretRequestSchema,
  type Secret,
  type SecretGrant,
  type SecretMount,
  type SecretUse,
} from '../../shared/api/secrets.ts'
import { ApiError } from '../../shared/errors.ts'
import { type FakeCoordinator, readText, sendJson } from './fake-coordinator.ts'

export type FakeSecrets = {
  secrets: Secret[]
  values: Map<string, string>
  mounts: (SecretMount & { boxId: string })[]
  broker: MountList['broker']
  uses: SecretUse[]
}

export function addFakeSecrets(fake: FakeCoordinator): FakeSecrets {
  const state: FakeSecrets = {
    secrets: [],
    values: new Map(),
    mounts: [],
    broker: { state: 'unknown', message: null, checkedAt: null },
    uses: [],
  }
  const now = () => new Date().toISOString()
  const find = (id: string): Secret => {
    const secret = state.secrets.find((candidate) => candidate.id === id)
    if (secret === undefined) throw new ApiError('not_found')
    return secret
  }
  const createGrant = ({ boxId, userId, email }: Grantee): SecretGrant => ({
    id: `sgr_${randomBytes(4).toString('hex')}`,
    boxId: boxId ?? null,
    hostname: fake.boxes.find(({ id }) => id === boxId)?.hostname ?? null,
    userId: userId ?? (email === undefined ? null : 'usr_2'),
    email: email ?? null,
    createdAt: now(),
  })
  const setGrants = (secret: Secret, grants: SecretGrant[]) => {
    secret.grants = grants
    if (grants.length > 0) secret.scope = 'granted'
    const isCovered = ({ boxId }: { boxId: string }) =>
      secret.scope === 'workspace' || grants.some((grant) => grant.boxId === boxId)
    state.mounts = state.mounts.filter((mount) => mount.secret.id !== secret.id || isCovered(mount))
  }
  const present = (secret: Secret): Secret => ({
    ...secret,
    mountCount: state.mounts.filter((mount) => mount.secret.id === secret.id).length,
  })

  fake.addRoutes([
    [
      /^GET \/api\/v1\/secrets(?:\?box=(.*))?$/,
      async (_, response, [, box]) => {
        const isVisible = ({ scope, grants }: Secret) =>
          box === undefined || scope === 'workspace' || grants.some(({ boxId }) => boxId === box)
        sendJson(response, { secrets: state.secrets.filter(isVisible).map(present) })
      },
    ],
    [
      /^POST \/api\/v1\/secrets$/,
      async (request, response) => {
        const {
          value,
          grants = [],
          ...fields
        } = createSecretRequestSchema.parse(JSON.parse(await readText(request)))
        const secret: Secret = {
          id: `sec_${randomBytes(4).toString('hex')}`,
          name: fields.name,
          description: fields.description ?? null,
          hosts: fields.hosts ?? [],
          in: fields.in ?? ['header'],
          placeholder: `${fields.placeholderPrefix ?? ''}dcpsec_${'0'.repeat(32)}`,
          mountCount: 0,
          scope: 'workspace',
          grants: [],
          createdAt: now(),
          updatedAt: now(),
          lastRotatedAt: null,
        }
        state.secrets.push(secret)
        state.values.set(secret.name, value)
        setGrants(secret, grants.map(createGrant))
        sendJson(response, { secret }, 201)
      },
    ],
    [
      /^PATCH \/api\/v1\/secrets\/([^/]+)$/,
      async (request, response, [, id = '']) => {
        const { value, ...fields } = patchSecretRequestSchema.parse(JSON.parse(await readText(request)))
        const secret = find(id)
        Object.assign(secret, fields)
        if (fields.scope !== undefined) setGrants(secret, [])
        if (value !== undefined) {
          state.values.set(secret.name, value)
          secret.lastRotatedAt = now()
        }
        sendJson(response, { secret: present(secret) })
      },
    ],
    [
      /^DELETE \/api\/v1\/secrets\/([^/]+)$/,
      async (_, response, [, id = '']) => {
        const secret = find(id)
        state.secrets = state.secrets.filter((other) => other !== secret)
        response.writeHead(204).end()
      },
    ],
    [
      /^POST \/api\/v1\/secrets\/([^/]+)\/grants$/,
      async (request, response, [, id = '']) => {
        const secret = find(id)
        const grant = createGrant(granteeSchema.parse(JSON.parse(await readText(request))))
        setGrants(secret, [...secret.grants, grant])
        sendJson(response, { grant }, 201)
      },
    ],
    [
      /^DELETE \/api\/v1\/secrets\/([^/]+)\/grants\/([^/?]+)$/,
      async (_, response, [, id = '', grantId]) => {
        const secret = find(id)
        setGrants(
          secret,
          secret.grants.filter((grant) => grant.id !== grantId),
        )
        response.writeHead(204).end()
      },
    ],
    [
      /^GET \/api\/v1\/secrets\/([^/]+)\/usage$/,
      async (_, response, [, id = '']) => {
        find(id)
        sendJson(response, { uses: state.uses })
      },
    ],
    [
      /^GET \/api\/v1\/boxes\/([^/]+)\/secrets$/,
      async (_, response, [, id]) => {
        const mounts = state.mounts.filter(({ boxId }) => boxId === id)
        sendJson(response, { mounts, broker: state.broker })
      },
    ],
    [
      /^POST \/api\/v1\/boxes\/([^/]+)\/secrets$/,
      async (request, response, [, boxId = '']) => {
        const body = mountSecretRequestSchema.parse(JSON.parse(await readText(request)))
        if (body.secretId === undefined) throw new Error('the box command creates no secret with a mount')
        const { id, name, placeholder, hosts, scope, grants } = find(body.secretId)
        if (scope === 'granted' && !grants.some((grant) => grant.boxId === boxId))
          throw new ApiError('secret_not_granted')
        if (state.mounts.some((mount) => mount.boxId === boxId && mount.envName === body.envName))
          throw new ApiError('env_name_taken')
        const mount = {
          id: `smt_${randomBytes(4).toString('hex')}`,
          envName: body.envName,
          secret: { id, name, placeholder, hosts },
        }
        state.mounts.push({ ...mount, boxId })
        sendJson(response, { mount }, 201)
      },
    ],
    [
      /^DELETE \/api\/v1\/boxes\/([^/]+)\/secrets\/([^/]+)$/,
      async (_, response, [, , mountId]) => {
        state.mounts = state.mounts.filter(({ id }) => id !== mountId)
        response.writeHead(204).end()
      },
    ],
  ])
  return state
}
