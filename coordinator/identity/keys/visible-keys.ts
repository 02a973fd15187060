// Reads the API keys that an actor may see.
import type { KeyList, ListKeysQuery } from '../../../shared/api/keys.ts'
import { ApiError } from '../../../shared/errors.ts'
import { isId } from '../../../shared/ids.ts'
import { LIMITS } from '../../../shared/limits.ts'
import type { Db } from '../../db/open.ts'
import type { ApiKeyRow } from '../../db/schema.ts'
import type { Actor } from '../../http/actor.ts'
import { encodeCursor, parseCursor } from '../../http/page-cursor.ts'
import { findKey, listKeys } from '../store/keys.ts'
import { canSeeKey, presentKey } from './key-rules.ts'

const NO_SUCH_KEY = 'No such API key. GET /api/v1/keys lists the ids of keys.'

/** @throws ApiError not_found */
export function requireVisible(actor: Actor, row: ApiKeyRow | undefined): ApiKeyRow {
  if (!row || !canSeeKey(actor, row)) throw new ApiError('not_found', NO_SUCH_KEY)
  return row
}

/** @throws ApiError not_found */
export async function findVisibleKey(db: Db, actor: Actor, id: string): Promise<ApiKeyRow> {
  return requireVisible(actor, isId('apiKey', id) ? await findKey(db, id) : undefined)
}

/**
 * Newest first: with `limit` or `before` one page, else all.
 * @throws ApiError bad_request for an invalid `before`
 */
export async function listVisibleKeys(db: Db, actor: Actor, query: ListKeysQuery): Promise<KeyList> {
  const { revoked, before: cursor } = query
  const isPage = query.limit !== undefined || cursor !== undefined
  const limit = query.limit ?? LIMITS.keyPage.max
  const rows = await listKeys(db, {
    workspaceId: actor.workspaceId,
    userId: actor.role === 'owner' ? undefined : (actor.userId ?? ''),
    includeRevoked: revoked ?? false,
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
