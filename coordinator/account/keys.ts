// API keys (spec §5): find the actor of a key, and create the first workspace's keys.
import { createHash } from 'node:crypto'
import type { AccessLevels } from '../../shared/api/account.ts'
import type { Clock } from '../../shared/clock.ts'
import { newId } from '../../shared/ids.ts'
import type { Db } from '../db/open.ts'
import type { ApiKeyRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import {
  findFirstWorkspace,
  findOwner,
  insertKey,
  insertUser,
  insertWorkspace,
  type KeyWithRole,
  prepareKeyQuery,
} from './store.ts'

/** The stored form of a key or box token: SHA-256, hex. They are random, so no salt is needed. */
export const hashSecret = (secret: string): string => createHash('sha256').update(secret).digest('hex')

export type KeyLookupResult =
  | { actor: Actor }
  | { rejected: 'unknown' }
  | { rejected: 'revoked' }
  | { rejected: 'expired'; expiresAt: number }

/** Returns a function that finds the actor for a key's hash. */
export function createKeyFinder({
  db,
  clock,
}: {
  db: Db
  clock: Clock
}): (hash: string) => Promise<KeyLookupResult> {
  const queryKey = prepareKeyQuery(db)
  return async (hash) => {
    const [row] = await queryKey(hash)
    if (!row) return { rejected: 'unknown' }
    if (row.revoked_at !== null) return { rejected: 'revoked' }
    if (row.expires_at !== null && row.expires_at <= clock.now()) {
      return { rejected: 'expired', expiresAt: row.expires_at }
    }
    return { actor: toActor(row) }
  }
}

function toActor(row: KeyWithRole): Actor {
  return {
    keyId: row.id,
    keyKind: row.kind,
    keyExpiresAt: row.expires_at,
    boxIds: row.box_ids === null ? null : (JSON.parse(row.box_ids) as string[]),
    access: row.access === null ? null : (JSON.parse(row.access) as AccessLevels),
    workspaceId: row.workspace_id,
    userId: row.user_id,
    // A key without a user has the permissions of a member, not of an owner.
    role: row.role ?? 'member',
  }
}

export type NewKeyOptions = {
  db: Db
  clock: Clock
  newApiKey(): string
  /**
   * Durably writes the key to where its owner finds it. Awaited before the commit: a crash in between leaves a key file
   * that matches no key in the database, and the next start creates the key again.
   */
  storeKey(key: string): Promise<void>
}

/** Creates a workspace, its owner and the owner's key, unless a workspace exists. */
export function ensureFirstWorkspace(options: NewKeyOptions): Promise<{ created: boolean; apiKey?: string }> {
  const { db, clock, newApiKey, storeKey } = options
  return transaction(db, async (trx) => {
    if (await findFirstWorkspace(trx)) return { created: false }
    const apiKey = newApiKey()
    await storeKey(apiKey)
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
    await addApiKey(trx, { workspaceId, userId, hash: hashSecret(apiKey), now })
    return { created: true, apiKey }
  })
}

/** Creates another key for the first workspace's owner, for when the key file is missing or unusable. */
export function createOwnerKey({ db, clock, newApiKey, storeKey }: NewKeyOptions): Promise<string> {
  return transaction(db, async (trx) => {
    const workspace = await findFirstWorkspace(trx)
    const owner = workspace && (await findOwner(trx, workspace.id))
    if (!owner)
      throw new Error(
        'The database has no workspace with an owner, so no owner key can be created. Restore the database from a backup.',
      )
    const apiKey = newApiKey()
    await storeKey(apiKey)
    await addApiKey(trx, {
      workspaceId: owner.workspace_id,
      userId: owner.id,
      hash: hashSecret(apiKey),
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

/** Stores a key by its hash. Returns the key's id. */
export async function addApiKey(
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
