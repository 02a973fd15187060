// Deletes expired sessions and codes.
import type { Clock } from '../../../shared/clock.ts'
import { deleteInBatches } from '../../db/delete-in-batches.ts'
import type { Db } from '../../db/open.ts'
import type { Trx } from '../../db/transaction.ts'
import { deleteCodes, deleteCodesOfWorkspace } from './code-store.ts'
import { CODE } from './lifetime.ts'
import { deleteExpiredSessions } from './store.ts'

const BATCH_SIZE = 500

/** @param signal aborts between two transactions */
export async function pruneSessions(
  { db, clock }: { db: Db; clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const now = clock.now()
  await deleteInBatches(db, (trx) => deleteExpiredSessions(trx, now, BATCH_SIZE), signal)
  for (const [keyCodes, keptMs] of [
    [false, CODE.keptMs],
    [true, CODE.keyCodeKeptMs],
  ] as const)
    await deleteInBatches(
      db,
      (trx) => deleteCodes(trx, { createdBefore: now - keptMs, keyCodes, limit: BATCH_SIZE }),
      signal,
    )
}

/** The codes of the keys and users of a workspace, and of people who are members of no other workspace. */
export const deleteSignInCodes = (trx: Trx, workspaceId: string): Promise<void> =>
  deleteCodesOfWorkspace(trx, workspaceId)
