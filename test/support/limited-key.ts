// Creates limited API keys, and keys of further users.

import { transaction } from '../../coordinator/db/transaction.ts'
import { hashSecret } from '../../coordinator/http/hash-secret.ts'
import { addApiKey, type KeyLimits } from '../../coordinator/identity/keys/keys.ts'
import { newApiKey } from '../../shared/api-key.ts'
import { newId } from '../../shared/ids.ts'
import type { TestCoordinator } from './coordinator.ts'

/** Adds a key with these limits to the owner. */
export async function createLimitedKey(
  { instance: coordinator }: Pick<TestCoordinator, 'instance'>,
  limits: KeyLimits,
): Promise<string> {
  const { db, clock } = coordinator.context
  const { workspaceId, userId } = coordinator.owner ?? {}
  if (workspaceId === undefined || userId === undefined) throw new Error('the coordinator has no owner')
  const key = newApiKey()
  const row = { workspaceId, userId, hash: hashSecret(key), now: clock.now(), ...limits }
  await transaction(db, (trx) => addApiKey(trx, row))
  return key
}

/** Adds a user to the workspace, with a key. */
export async function createUserKey(
  { instance: coordinator }: Pick<TestCoordinator, 'instance'>,
  role: 'owner' | 'member' | 'contractor',
): Promise<string> {
  const { db, clock } = coordinator.context
  const { workspaceId } = coordinator.owner ?? {}
  if (workspaceId === undefined) throw new Error('the coordinator has no owner')
  const [key, userId, now] = [newApiKey(), newId('user'), clock.now()]
  await transaction(db, async (trx) => {
    await trx
      .insertInto('users')
      .values({ id: userId, workspace_id: workspaceId, email: null, name: role, role, created_at: now })
      .execute()
    await addApiKey(trx, { workspaceId, userId, hash: hashSecret(key), now })
  })
  return key
}
