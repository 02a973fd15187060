// Changes API keys: update, rotation and revocation.
import type { ApiKey, KeyWithSecret, UpdateKeyRequest } from '../../../shared/api/keys.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import type { Db } from '../../db/open.ts'
import type { ApiKeyRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { recordAccessChange } from '../../http/access-changes.ts'
import type { Actor } from '../../http/actor.ts'
import { hashSecret } from '../../http/hash-secret.ts'
import { confirmActor } from '../confirm-actor.ts'
import { lockKey, updateKey } from '../store/keys.ts'
import { findUserById } from '../store/users.ts'
import { checkBoxIds, type KeyBoxes } from './key-box-ids.ts'
import {
  computeMachineExpiry,
  createKeyAuditDetail,
  expandAccess,
  isNarrower,
  parseExpiry,
  presentKey,
  requireUsableKey,
} from './key-rules.ts'
import { getKeyEnding } from './keys.ts'
import { findVisibleKey, requireVisible } from './visible-keys.ts'

/** Functions throw not_found for a key that the actor may not see. */
export type KeyChanges = {
  /** Throws bad_request, and not_found for a box that the key cannot be limited to and for a revoked or expired key. */
  update(actor: Actor, id: string, input: UpdateKeyRequest): Promise<ApiKey>
  /** Replaces the secret. Throws not_found for a revoked or expired key, not_allowed for a key of another user. */
  rotate(actor: Actor, id: string): Promise<KeyWithSecret>
  /** Idempotent. */
  revoke(actor: Actor, id: string): Promise<void>
}

export type KeyChangesOptions = {
  db: Db
  clock: Clock
  newApiKey(): string
  boxes: KeyBoxes
}

export function createKeyChanges(options: KeyChangesOptions): KeyChanges {
  const { db, clock, newApiKey, boxes } = options

  /** @param change returns the changed columns */
  async function change(
    actor: Actor,
    id: string,
    kind: 'key.update' | 'key.rotate',
    change: (row: ApiKeyRow, now: number) => Partial<ApiKeyRow>,
  ): Promise<ApiKey> {
    return transaction(db, async (trx) => {
      const now = clock.now()
      await confirmActor(trx, actor, now)
      const before = requireUsableKey(requireVisible(actor, await lockKey(trx, id)), now)
      const after = await updateKey(trx, id, change(before, now))
      recordKeyEvent(trx, actor, kind, after, now)
      if (before.hash !== after.hash || isNarrower(before, after)) recordChange(trx, after)
      return presentKey(after)
    })
  }

  async function update(actor: Actor, id: string, input: UpdateKeyRequest): Promise<ApiKey> {
    if (Object.values(input).every((value) => value === undefined))
      throw new ApiError('bad_request', 'body must have at least one field to change')
    const found = await findVisibleKey(db, actor, id)
    const { name, expiresAt, access } = input
    const boxIds = input.boxIds
      ? await checkBoxIds(boxes, await findKeyUser(actor, found), input.boxIds)
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
    const { user_id: userId } = await findVisibleKey(db, actor, id)
    // An owner who has the secret could act as the other user.
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
    await findVisibleKey(db, actor, id)
    await transaction(db, async (trx) => {
      const now = clock.now()
      await confirmActor(trx, actor, now)
      const row = requireVisible(actor, await lockKey(trx, id))
      if (row.revoked_at !== null) return
      recordKeyEvent(trx, actor, 'key.revoke', await updateKey(trx, id, { revoked_at: now }), now)
      recordChange(trx, row)
    })
  }

  const recordChange = (trx: Trx, { id, workspace_id: workspaceId }: ApiKeyRow) =>
    recordAccessChange(trx, { workspaceId, credentialId: id })

  return { update, rotate, revoke }
}

type KeyAuditKind = 'key.create' | 'key.update' | 'key.rotate' | 'key.revoke'

export const recordKeyEvent = (
  trx: Trx,
  actor: Actor,
  kind: KeyAuditKind,
  row: ApiKeyRow,
  at: number,
): void => recordAuditEvent(trx, { kind, actor, boxId: null, detail: createKeyAuditDetail(row), at })
