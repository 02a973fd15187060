// Keys with limits, made as the account routes will make them.
import { addKey, hashOf, type KeyLimits } from '../../coordinator/account/keys.ts'
import { transaction } from '../../coordinator/db/transaction.ts'
import { newApiKey } from '../../shared/ids.ts'
import type { TestCoordinator } from './coordinator.ts'

/** A further key of the owner, with these limits. */
export async function keyWith(
  { coordinator }: Pick<TestCoordinator, 'coordinator'>,
  limits: KeyLimits,
): Promise<string> {
  const { db, clock } = coordinator.context
  const { workspaceId, userId } = coordinator.owner ?? {}
  if (workspaceId === undefined || userId === undefined) throw new Error('There is no owner.')
  const key = newApiKey()
  const row = { workspaceId, userId, hash: hashOf(key), now: clock.now(), ...limits }
  await transaction(db, (trx) => addKey(trx, row))
  return key
}
