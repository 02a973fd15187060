// The requests on API keys (spec §5): access checks, rules and writes.
import type { Box } from '../../shared/api/boxes.ts'
import type {
  ApiKey,
  CreateKeyRequest,
  KeyList,
  KeyWithSecret,
  ListKeysQuery,
  UpdateKeyRequest,
} from '../../shared/api/keys.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { isId, isUuid } from '../../shared/ids.ts'
import { LIMITS } from '../../shared/limits.ts'
import { recordAuditEvent } from '../audit/service.ts'
import type { Db } from '../db/open.ts'
import type { ApiKeyRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { hashSecret } from '../http/hash-secret.ts'
import type { OpenRequests } from '../http/open-requests.ts'
import { encodeCursor, parseCursor } from '../http/page-cursor.ts'
import { countKeys, findKey, insertKey, listKeys, lockKey, updateKey } from '../identity-store/keys.ts'
import { findUserById } from '../identity-store/users.ts'
import { assertOpen } from '../workspaces/service.ts'
import {
  canSeeKey,
  chooseExpiry,
  computeMachineExpiry,
  createKeyAuditDetail,
  expandAccess,
  isNarrower,
  parseExpiry,
  presentKey,
  requireUsableKey,
} from './key-rules.ts'
import { createKeyRow, getKeyEnding } from './keys.ts'

/** Functions with an id throw not_found for a key that the actor may not see. */
export type KeyService = {
  /** Newest first: with `limit` or `before` one page, else all. Throws bad_request for an invalid `before`. */
  list(actor: Actor, query: ListKeysQuery): Promise<KeyList>
  get(actor: Actor, id: string): Promise<ApiKey>
  /** Throws bad_request, not_owner, workspace_closing, not_allowed above the limit, and not_found for a box that the key cannot be limited to. */
  create(actor: Actor, input: CreateKeyRequest): Promise<KeyWithSecret>
  /** Throws bad_request, and not_found for a box that the key cannot be limited to and for a revoked or expired key. */
  update(actor: Actor, id: string, input: UpdateKeyRequest): Promise<ApiKey>
  /** Replaces the secret. Throws not_found for a revoked or expired key, not_allowed for a key of another user. */
  rotate(actor: Actor, id: string): Promise<KeyWithSecret>
  /** Idempotent. */
  revoke(actor: Actor, id: string): Promise<void>
}

export type KeyServiceOptions = {
  db: Db
  clock: Clock
  newApiKey(): string
  boxes: { list(actor: Actor, options: { live: boolean }): Promise<Pick<Box, 'id' | 'desiredState'>[]> }
  openRequests: Pick<OpenRequests, 'accessChanged'>
}

const NO_SUCH_KEY = 'No such API key. GET /api/v1/keys lists the ids of keys.'

export function createKeyService(options: KeyServiceOptions): KeyService {
  const { db, clock, newApiKey, boxes, openRequests } = options

  function requireVisible(actor: Actor, row: ApiKeyRow | undefined): ApiKeyRow {
    if (!row || !canSeeKey(actor, row)) throw new ApiError('not_found', NO_SUCH_KEY)
    return row
  }

  async function find(actor: Actor, id: string): Promise<ApiKeyRow> {
    return requireVisible(actor, isId('apiKey', id) ? await findKey(db, id) : undefined)
  }

  async function list(actor: Actor, query: ListKeysQuery): Promise<KeyList> {
    const { revoked, before: cursor } = query
    const isPage = query.limit !== undefined || cursor !== undefined
    const limit = query.limit ?? LIMITS.keyPage.max
    const rows = await listKeys(db, {
      workspaceId: actor.workspaceId,
      userId: actor.role === 'owner' ? undefined : (actor.userId ?? ''),
      includeRevoked: revoked === '1',
      before: cursor === undefined ? undefined : parseCursor(cursor, (id) => isId('apiKey', id)),
      limit: isPage ? limit + 1 : undefined,
    })
    if (!isPage) return { keys: rows.map(presentKey) }
    const page = rows.slice(0, limit)
    const last = page.at(-1)
    const hasMore = rows.length > limit && last !== undefined
    return {
      keys: page.map(presentKey),
      nextBefore: hasMore ? encodeCursor({ at: last.created_at, id: last.id }) : null,
    }
  }

  /**
   * Returns the ids in the stored form.
   * @param keyUser the user of the key
   * @throws ApiError not_found
   */
  async function checkBoxIds(keyUser: Actor, ids: readonly string[]): Promise<string[]> {
    const sorted = [...new Set(ids)].sort()
    const boxIds = sorted.filter(isUuid)
    const visible = boxIds.length === 0 ? [] : await boxes.list({ ...keyUser, boxIds }, { live: true })
    const usable = visible.filter((box) => box.desiredState !== 'terminated')
    if (usable.length < sorted.length)
      throw new ApiError(
        'not_found',
        'boxIds has a box that does not exist, has been deleted, or that the user of the key may not access.',
      )
    return sorted
  }

  async function create(actor: Actor, input: CreateKeyRequest): Promise<KeyWithSecret> {
    if (input.user === null && actor.role !== 'owner')
      throw new ApiError('not_owner', 'Only an owner of the workspace may create a key with no user.')
    const now = clock.now()
    const expiresAt = chooseExpiry(input, now)
    const { name, kind, access } = input
    const boxIds = input.boxIds ? await checkBoxIds(actor, input.boxIds) : undefined
    const secret = newApiKey()
    return transaction(db, async (trx) => {
      const row = createKeyRow({
        workspaceId: actor.workspaceId,
        userId: input.user === null ? null : actor.userId,
        hash: hashSecret(secret),
        ending: getKeyEnding(secret),
        now,
        name,
        ...(kind && { kind }),
        ...(expiresAt !== null && { expiresAt }),
        ...(boxIds && { boxIds }),
        ...(access != null && { access: expandAccess(access) }),
      })
      await assertOpen(trx, actor.workspaceId)
      if ((await countKeys(trx, actor.workspaceId, row.user_id)) >= LIMITS.keysPerUser)
        throw new ApiError(
          'not_allowed',
          `You have ${LIMITS.keysPerUser} API keys, which is the limit. Revoke one first.`,
        )
      await insertKey(trx, row)
      record(trx, actor, 'key.create', row, now)
      return { key: presentKey(row), secret }
    })
  }

  /** @param change returns the changed columns */
  async function change(
    actor: Actor,
    id: string,
    kind: 'key.update' | 'key.rotate',
    change: (row: ApiKeyRow, now: number) => Partial<ApiKeyRow>,
  ): Promise<ApiKey> {
    return transaction(db, async (trx, onCommit) => {
      const now = clock.now()
      const before = requireUsableKey(requireVisible(actor, await lockKey(trx, id)), now)
      const after = await updateKey(trx, id, change(before, now))
      record(trx, actor, kind, after, now)
      if (before.hash !== after.hash || isNarrower(before, after)) onCommit(() => notify(after))
      return presentKey(after)
    })
  }

  async function update(actor: Actor, id: string, input: UpdateKeyRequest): Promise<ApiKey> {
    if (Object.values(input).every((value) => value === undefined))
      throw new ApiError('bad_request', 'body must have at least one field to change')
    const found = await find(actor, id)
    const { name, expiresAt, access } = input
    const boxIds = input.boxIds
      ? await checkBoxIds(await findKeyUser(actor, found), input.boxIds)
      : input.boxIds
    return change(actor, id, 'key.update', (row, now) => ({
      ...(name !== undefined && { name }),
      ...(expiresAt !== undefined && { expires_at: parseExpiry(row.kind, expiresAt, now) }),
      ...(boxIds !== undefined && { box_ids: boxIds && JSON.stringify(boxIds) }),
      ...(access !== undefined && { access: access && JSON.stringify(expandAccess(access)) }),
    }))
  }

  async function findKeyUser(actor: Actor, { user_id: userId }: ApiKeyRow): Promise<Actor> {
    const user = userId === null ? undefined : await findUserById(db, userId)
    return { ...actor, userId, role: user?.role ?? 'member' }
  }

  async function rotate(actor: Actor, id: string): Promise<KeyWithSecret> {
    const { user_id: userId } = await find(actor, id)
    // With the secret an owner would act as the other user.
    if (userId !== null && userId !== actor.userId)
      throw new ApiError('not_allowed', 'Only the user of an API key may rotate it. Revoke the key instead.')
    const secret = newApiKey()
    const key = await change(actor, id, 'key.rotate', (row, now) => ({
      hash: hashSecret(secret),
      ending: getKeyEnding(secret),
      last_used_at: null,
      ...(row.kind === 'machine' && { expires_at: computeMachineExpiry(now) }),
    }))
    return { key, secret }
  }

  async function revoke(actor: Actor, id: string): Promise<void> {
    await find(actor, id)
    await transaction(db, async (trx, onCommit) => {
      const row = requireVisible(actor, await lockKey(trx, id))
      if (row.revoked_at !== null) return
      const now = clock.now()
      record(trx, actor, 'key.revoke', await updateKey(trx, id, { revoked_at: now }), now)
      onCommit(() => notify(row))
    })
  }

  const notify = ({ id, workspace_id: workspaceId }: ApiKeyRow) =>
    openRequests.accessChanged({ workspaceId, credentialId: id })

  return { list, get: async (actor, id) => presentKey(await find(actor, id)), create, update, rotate, revoke }
}

type KeyAuditKind = 'key.create' | 'key.update' | 'key.rotate' | 'key.revoke'

const record = (trx: Trx, actor: Actor, kind: KeyAuditKind, row: ApiKeyRow, at: number): void =>
  recordAuditEvent(trx, { kind, actor, boxId: null, detail: createKeyAuditDetail(row), at })
