// API keys: whose a key is, and how the first ones come to be (spec §5).
import { createHash } from 'node:crypto'
import type { AccessLevels } from '../../shared/api/account.ts'
import type { Clock } from '../../shared/clock.ts'
import { newId } from '../../shared/ids.ts'
import type { Db } from '../db/open.ts'
import type { ApiKeyRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import {
  firstWorkspace,
  insertKey,
  insertUser,
  insertWorkspace,
  type KeyWithRole,
  keyLookup,
  ownerOf,
} from './store.ts'

/** How a key or box token is stored: SHA-256, hex. They are random, so no salt is needed. */
export const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex')

export type Found =
  | { actor: Actor }
  | { refused: 'unknown' }
  | { refused: 'revoked' }
  | { refused: 'expired'; expiresAt: number }

/** Returns the function that says who a key's hash acts as, now. */
export function createKeyFinder({ db, clock }: { db: Db; clock: Clock }): (hash: string) => Promise<Found> {
  const lookup = keyLookup(db)
  return async (hash) => {
    const [row] = await lookup(hash)
    if (!row) return { refused: 'unknown' }
    if (row.revoked_at !== null) return { refused: 'revoked' }
    if (row.expires_at !== null && row.expires_at <= clock.now()) {
      return { refused: 'expired', expiresAt: row.expires_at }
    }
    return { actor: actorOf(row) }
  }
}

function actorOf(row: KeyWithRole): Actor {
  return {
    keyId: row.id,
    keyKind: row.kind,
    keyExpiresAt: row.expires_at,
    boxIds: row.box_ids === null ? null : (JSON.parse(row.box_ids) as string[]),
    access: row.access === null ? null : (JSON.parse(row.access) as AccessLevels),
    workspaceId: row.workspace_id,
    userId: row.user_id,
    // A key with no user is nobody's: it may do what every member may, and nothing that only owners may.
    role: row.role ?? 'member',
  }
}

export type NewKeys = {
  db: Db
  clock: Clock
  newApiKey(): string
  /**
   * Puts the key where its owner finds it, durably. Awaited before the commit: a crash in between leaves a key
   * file that nothing knows and no workspace (or a missing key), so the next start makes both anew.
   */
  keep(key: string): Promise<void>
}

/** Makes the workspace, its owner and the owner's key, unless there is a workspace. */
export function ensureFirstWorkspace(options: NewKeys): Promise<{ created: boolean; apiKey?: string }> {
  const { db, clock, newApiKey, keep } = options
  return transaction(db, async (trx) => {
    if (await firstWorkspace(trx)) return { created: false }
    const apiKey = newApiKey()
    await keep(apiKey)
    const now = clock.now()
    const workspaceId = newId('workspace')
    const userId = newId('user')
    await insertWorkspace(trx, { id: workspaceId, name: 'Boxwood', zero_data_retention: 0, created_at: now })
    await insertUser(trx, {
      id: userId,
      workspace_id: workspaceId,
      email: null,
      name: 'Owner',
      role: 'owner',
      created_at: now,
    })
    await addKey(trx, { workspaceId, userId, hash: hashOf(apiKey), now })
    return { created: true, apiKey }
  })
}

/** One more key for the first workspace's owner: for a start that finds no usable key file. */
export function mintOwnerKey({ db, clock, newApiKey, keep }: NewKeys): Promise<string> {
  return transaction(db, async (trx) => {
    const workspace = await firstWorkspace(trx)
    const owner = workspace && (await ownerOf(trx, workspace.id))
    if (!owner) throw new Error('There is no workspace with an owner to make a key for.')
    const apiKey = newApiKey()
    await keep(apiKey)
    await addKey(trx, {
      workspaceId: owner.workspace_id,
      userId: owner.id,
      hash: hashOf(apiKey),
      now: clock.now(),
    })
    return apiKey
  })
}

export type KeyLimits = {
  kind?: ApiKeyRow['kind']
  expiresAt?: number
  boxIds?: readonly string[]
  access?: AccessLevels
}

/** Adds a key of which only the hash is known here; returns its id. */
export async function addKey(
  trx: Trx,
  key: { workspaceId: string; userId: string | null; hash: string; now: number } & KeyLimits,
): Promise<string> {
  const id = newId('apiKey')
  await insertKey(trx, {
    id,
    workspace_id: key.workspaceId,
    user_id: key.userId,
    hash: key.hash,
    kind: key.kind ?? 'api',
    expires_at: key.expiresAt ?? null,
    revoked_at: null,
    box_ids: key.boxIds ? JSON.stringify(key.boxIds) : null,
    access: key.access ? JSON.stringify(key.access) : null,
    created_at: key.now,
  })
  return id
}
