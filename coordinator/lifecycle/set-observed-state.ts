// The only writer of observed states: checks the transition and records its event.
import type { ObservedState } from '../../shared/api/boxes.ts'
import { markCommandsLost } from '../commands/mark-lost.ts'
import type { Trx } from '../db/transaction.ts'
import { type BoxRow, recordStateChange, updateBox } from './store.ts'
import { ALLOWED_TRANSITIONS } from './transitions.ts'

/** Does nothing when the box is already in the state. Throws when ALLOWED_TRANSITIONS forbids the transition. */
export async function setObservedState(
  trx: Trx,
  box: BoxRow,
  to: ObservedState,
  reason: string,
  actor: string,
  now: number,
): Promise<BoxRow> {
  const from = box.observed_state
  if (from === to) return box
  if (!ALLOWED_TRANSITIONS[from].includes(to))
    throw new Error(`Illegal box state transition: ${from} to ${to}.`)
  await recordStateChange(trx, box.id, { from, to, reason, actor, at: now })
  if (to === 'suspended' || to === 'terminated') await markCommandsLost(trx, box.id)
  return updateBox(trx, box.id, { observed_state: to, state_since: now, updated_at: now })
}
