// Records what happened with the files and repositories of a box in its history. The state of the box does not change.
import { recordStateChange } from '../../boxes/updates.ts'
import type { BoxRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

const MAX_REASON = 500

/** Parts of the text may be from the agent, which is not trusted. */
const toReason = (text: string): string => {
  const printable = text.replace(/[\p{C}\s]+/gu, ' ')
  return printable.length > MAX_REASON ? `${printable.slice(0, MAX_REASON - 1)}…` : printable
}

export function recordBoxEvent(
  trx: Trx,
  { id, observed_state: state }: Pick<BoxRow, 'id' | 'observed_state'>,
  reason: string,
  now: number,
): Promise<void> {
  return recordStateChange(trx, id, {
    from: state,
    to: state,
    reason: toReason(reason),
    actor: 'system',
    at: now,
  })
}
