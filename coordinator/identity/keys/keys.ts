// API keys (spec §5): find the actor of a key, and create the first workspace's keys.
import type { AccessLevels } from '../../../shared/api/account.ts'
import { KEY_ENDING_CHARS } from '../../../shared/api/keys.ts'
import type { Clock } from '../../../shared/clock.ts'
import { newId } from '../../../shared/ids.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import type { Db } from '../../db/open.ts'
import type { ApiKeyRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import type { Actor, ActorIdentity } from '../../http/actor.ts'
import type { CredentialLookup, FindCredential } from '../../http/auth.ts'
import { hashSecret } from '../../http/hash-secret.ts'
import {
  findKeyWithUser,
  insertKey,
  type KeyWithUser,
  prepareKeyByIdQuery,
  prepareKeyQuery,
} from '../store/keys.ts'
import { findOwner, insertUser } from '../store/users.ts'
import { findFirstWorkspace, insertWorkspace } from '../store/workspaces.ts'
import { computeMachineExpiry, createKeyAuditDetail, readAccess, readBoxIds } from './key-rules.ts'

export type KeyFinderOptions = {
  db: Db
  clock: Clock
  /** Called for each accepted key. */
  onUse?: (key: { id: string; hash: string }) => void
}

/** Finds the actor of the API key with this hash. */
export function createKeyFinder({ db, clock, onUse }: KeyFinderOptions): FindCredential {
  const queryKey = prepareKeyQuery(db)
  return async (hash) => {
    const [row] = await queryKey(hash)
    if (!row) return { rejected: 'unknown' }
    const found = toLookup(row, clock.now())
    if ('actor' in found) onUse?.(row)
    return found
  }
}

/** Finds the actor of a key by the id of the key, and does not record a use. */
export function createKeyActorFinder({
  db,
  clock,
}: Pick<KeyFinderOptions, 'db' | 'clock'>): (id: string) => Promise<CredentialLookup> {
  const queryKey = prepareKeyByIdQuery(db)
  return async (id) => {
    const [row] = await queryKey(id)
    return row ? toLookup(row, clock.now()) : { rejected: 'unknown' }
  }
}

/** Finds the actor of a key by the id of the key. @param now milliseconds since the epoch */
export async function findKeyActor(trx: Trx, id: string, now: number): Promise<CredentialLookup> {
  const row = await findKeyWithUser(trx, id)
  return row ? toLookup(row, now) : { rejected: 'unknown' }
}

function toLookup(row: KeyWithUser, now: number): CredentialLookup {
  if (row.revoked_at !== null || row.user_removed_at !== null)
    return { rejected: 'revoked', identity: toIdentity(row) }
  if (row.expires_at !== null && row.expires_at <= now)
    return { rejected: 'expired', expiresAt: row.expires_at, identity: toIdentity(row) }
  return { actor: toActor(row, now) }
}

const toIdentity = ({ id, kind, workspace_id, user_id }: KeyWithUser): ActorIdentity => ({
  credential: { type: 'key', id, kind },
  workspaceId: workspace_id,
  userId: user_id,
})

const toActor = (row: KeyWithUser, now: number): Actor => ({
  credential: {
    type: 'key',
    id: row.id,
    kind: row.kind,
    // The use that moves the expiry of a machine key is written later.
    expiresAt: row.kind === 'machine' && row.expires_at !== null ? computeMachineExpiry(now) : row.expires_at,
    isUnverified: row.unverified_since !== null,
  },
  boxIds: readBoxIds(row),
  access: readAccess(row),
  workspaceId: row.workspace_id,
  userId: row.user_id,
  // A key without a user has the permissions of a member, not of an owner.
  role: row.role ?? 'member',
})

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
export function ensureFirstWorkspace(
  options: NewKeyOptions,
): Promise<{ created: boolean; apiKey?: string; key?: ApiKeyRow }> {
  const { db, clock, newApiKey, storeKey } = options
  return transaction(db, async (trx) => {
    if (await findFirstWorkspace(trx)) return { created: false }
    const apiKey = newApiKey()
    await storeKey(apiKey)
    const now = clock.now()
    const workspaceId = newId('workspace')
    const userId = newId('user')
    await insertWorkspace(trx, {
      id: workspaceId,
      name: 'Boxwood',
      zero_data_retention: 0,
      created_at: now,
      closing_at: null,
      purge_after: null,
    })
    await insertUser(trx, {
      id: userId,
      workspace_id: workspaceId,
      email: null,
      name: 'Owner',
      role: 'owner',
      created_at: now,
      joined_at: now,
      removed_at: null,
    })
    const key = createKeyRow({ ...createOwnerKeyFields(apiKey), workspaceId, userId, now })
    await insertKey(trx, key)
    return { created: true, apiKey, key }
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
    const row = createKeyRow({
      workspaceId: owner.workspace_id,
      userId: owner.id,
      ...createOwnerKeyFields(apiKey),
      now: clock.now(),
    })
    await insertKey(trx, row)
    recordKeyCreation(trx, row)
    return apiKey
  })
}

/** Records a key that the coordinator itself created. */
export const recordKeyCreation = (trx: Trx, row: ApiKeyRow): void =>
  recordAuditEvent(trx, {
    kind: 'key.create',
    actor: { system: true, workspaceId: row.workspace_id },
    boxId: null,
    detail: createKeyAuditDetail(row),
    at: row.created_at,
  })

const createOwnerKeyFields = (apiKey: string) => ({
  hash: hashSecret(apiKey),
  ending: getKeyEnding(apiKey),
  name: 'owner key',
})

export type KeyLimits = {
  kind?: ApiKeyRow['kind']
  expiresAt?: number
  boxIds?: readonly string[]
  access?: AccessLevels
  name?: string
  unverifiedSince?: number
}

export type NewKey = {
  workspaceId: string
  userId: string | null
  hash: string
  ending?: string
  now: number
} & KeyLimits

/** Stores a key by its hash. Returns the key's id. */
export async function addApiKey(trx: Trx, key: NewKey): Promise<string> {
  const row = createKeyRow(key)
  await insertKey(trx, row)
  return row.id
}

export const createKeyRow = (key: NewKey): ApiKeyRow => ({
  id: newId('apiKey'),
  workspace_id: key.workspaceId,
  user_id: key.userId,
  hash: key.hash,
  kind: key.kind ?? 'api',
  expires_at: key.expiresAt ?? null,
  revoked_at: null,
  box_ids: key.boxIds ? JSON.stringify(key.boxIds) : null,
  access: key.access ? JSON.stringify(key.access) : null,
  created_at: key.now,
  name: key.name ?? 'API key',
  ending: key.ending ?? null,
  last_used_at: null,
  unverified_since: key.unverifiedSince ?? null,
})

/** The part of a key that is stored unhashed. */
export const getKeyEnding = (apiKey: string): string => apiKey.slice(-KEY_ENDING_CHARS)
