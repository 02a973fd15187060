// Renames a box: writes the name, also that of its snapshots, and the event.
import type { BoxRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import { isUniqueViolation } from '../db/unique-violation.ts'
import { createTakenError } from './insert-with-name.ts'
import { updateBox } from './store/boxes.ts'
import { recordStateChange } from './store/events.ts'
import { renameSourceBox } from './store/snapshots.ts'

/**
 * No-op for the name that the box has. Relies on the unique index: of two concurrent requests for a name, one succeeds.
 * Throws name_taken, after which the transaction must be rolled back.
 */
export async function renameBox(
  trx: Trx,
  { id, hostname, observed_state: state }: BoxRow,
  name: string,
  { actor, now }: { actor: string; now: number },
): Promise<void> {
  if (name === hostname) return
  try {
    await updateBox(trx, id, { hostname: name })
  } catch (error) {
    throw isUniqueViolation(error) ? createTakenError(name) : error
  }
  await renameSourceBox(trx, id, name)
  const reason = `renamed from ${hostname} to ${name}`
  await recordStateChange(trx, id, { from: state, to: state, reason, actor, at: now })
}
