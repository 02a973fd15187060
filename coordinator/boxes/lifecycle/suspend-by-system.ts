// Suspends a box without a request of a user, such as at its deadline.
import { recordBoxChange } from '../../audit/record-change.ts'
import type { BoxRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { setDesiredState } from './set-desired-state.ts'

/**
 * The caller has locked the box, and schedules it for the reconciler after the commit.
 * @param options.reason is in the events of the box and in the audit log, such as `quiet hours`
 */
export async function suspendBySystem(
  trx: Trx,
  box: BoxRow,
  { reason, now }: { reason: string; now: number },
): Promise<void> {
  const by = { actor: 'system', now } as const
  await setDesiredState(trx, box, { ...by, state: 'suspended', reason })
  recordBoxChange(trx, 'box.suspend', box, by, { stop: false, reason })
}
