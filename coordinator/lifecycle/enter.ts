// The only place that writes an observed state: checked against the table, with its event.
import type { ObservedState } from '../../shared/api/boxes.ts'
import { loseCommands } from '../commands/lost.ts'
import type { Trx } from '../db/transaction.ts'
import { type BoxRow, recordChange, updateBox } from './store.ts'
import { FOLLOWS } from './transitions.ts'

/** Moves the box to a state. Already in it: nothing happens. Throws when the table does not allow the move. */
export async function enter(
  trx: Trx,
  box: BoxRow,
  to: ObservedState,
  reason: string,
  actor: string,
  now: number,
): Promise<BoxRow> {
  const from = box.observed_state
  if (from === to) return box
  if (!FOLLOWS[from].includes(to)) throw new Error(`A box that is ${from} cannot become ${to}.`)
  await recordChange(trx, box.id, { from, to, reason, actor, at: now })
  if (to === 'suspended' || to === 'terminated') await loseCommands(trx, box.id)
  return updateBox(trx, box.id, { observed_state: to, state_since: now, updated_at: now })
}
