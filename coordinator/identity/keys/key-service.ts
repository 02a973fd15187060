// The requests on API keys (spec §5): access checks, rules and writes.
import type {
  ApiKey,
  CreateKeyRequest,
  KeyList,
  KeyWithSecret,
  ListKeysQuery,
} from '../../../shared/api/keys.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { transaction } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import { hashSecret } from '../../http/hash-secret.ts'
import { confirmActor } from '../confirm-actor.ts'
import { countKeys, insertKey } from '../store/keys.ts'
import { assertOpen } from '../workspaces/service.ts'
import { checkBoxIds } from './key-box-ids.ts'
import { createKeyChanges, type KeyChanges, type KeyChangesOptions, recordKeyEvent } from './key-changes.ts'
import { chooseExpiry, expandAccess, presentKey } from './key-rules.ts'
import { createKeyRow, getKeyEnding } from './keys.ts'
import { findVisibleKey, listVisibleKeys } from './visible-keys.ts'

/** Functions with an id throw not_found for a key that the actor may not see. */
export type KeyService = KeyChanges & {
  /** Newest first: with `limit` or `before` one page, else all. Throws bad_request for an invalid `before`. */
  list(actor: Actor, query: ListKeysQuery): Promise<KeyList>
  get(actor: Actor, id: string): Promise<ApiKey>
  /** Throws bad_request, not_owner, workspace_closing, not_allowed above the limit, and not_found for a box that the key cannot be limited to. */
  create(actor: Actor, input: CreateKeyRequest): Promise<KeyWithSecret>
}

export function createKeyService(options: KeyChangesOptions): KeyService {
  const { db, clock, newApiKey, boxes } = options
  const { update, rotate, revoke } = createKeyChanges(options)

  async function create(actor: Actor, input: CreateKeyRequest): Promise<KeyWithSecret> {
    if (input.user === null && actor.role !== 'owner')
      throw new ApiError('not_owner', 'Only an owner of the workspace may create a key with no user.')
    const now = clock.now()
    const expiresAt = chooseExpiry(input, now)
    const { name, kind, access } = input
    const boxIds = input.boxIds ? await checkBoxIds(boxes, actor, input.boxIds) : undefined
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
      await confirmActor(trx, actor, now)
      await assertOpen(trx, actor.workspaceId)
      if ((await countKeys(trx, actor.workspaceId, row.user_id)) >= LIMITS.keysPerUser)
        throw new ApiError(
          'not_allowed',
          `You have ${LIMITS.keysPerUser} API keys, which is the limit. Revoke one first.`,
        )
      await insertKey(trx, row)
      recordKeyEvent(trx, actor, 'key.create', row, now)
      return { key: presentKey(row), secret }
    })
  }

  return {
    list: (actor, query) => listVisibleKeys(db, actor, query),
    get: async (actor, id) => presentKey(await findVisibleKey(db, actor, id)),
    create,
    update,
    rotate,
    revoke,
  }
}
