// Creates limited API keys.
import { addApiKey, hashSecret, type KeyLimits } from '../../coordinator/account/keys.ts'
import { transaction } from '../../coordinator/db/transaction.ts'
import { newApiKey } from '../../shared/ids.ts'
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
