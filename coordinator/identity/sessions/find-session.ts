// Finds the actor of a dashboard session, and stores that the session is used.
import type { Clock } from '../../../shared/clock.ts'
import type { BackgroundTasks } from '../../base/background-tasks.ts'
import type { Db } from '../../db/open.ts'
import { transaction } from '../../db/transaction.ts'
import type { FindCredential } from '../../http/auth.ts'
import { updateUser } from '../store/users.ts'
import { getSessionExpiry, SESSION } from './lifetime.ts'
import { prepareSessionQuery, type SessionWithUser, storeUse } from './store.ts'

export type SessionFinderOptions = { db: Db; clock: Clock; background: BackgroundTasks }

export function createSessionFinder({ db, clock, background }: SessionFinderOptions): FindCredential {
  const querySession = prepareSessionQuery(db)
  /** Ids of sessions whose use is being stored: one write for many requests at the same time. */
  const storing = new Set<string>()

  function touch({ id, user_id, created_at, last_used_at }: SessionWithUser): void {
    const now = clock.now()
    if (now - last_used_at < SESSION.touchMs || storing.has(id)) return
    storing.add(id)
    const use = { id, last_used_at: now, expires_at: getSessionExpiry(created_at, now) }
    background.run('store the use of a session', () =>
      transaction(db, async (trx) => {
        // Locks the user before the session, in the order of the removal of a member.
        await updateUser(trx, user_id, { last_active_at: now })
        await storeUse(trx, use)
      }).finally(() => storing.delete(id)),
    )
  }

  return async (hash) => {
    const [row] = await querySession(hash)
    if (!row || row.user_removed_at !== null || row.expires_at <= clock.now()) return { rejected: 'unknown' }
    touch(row)
    return {
      actor: {
        credential: { type: 'session', id: row.id, expiresAt: row.expires_at },
        boxIds: null,
        access: null,
        workspaceId: row.workspace_id,
        userId: row.user_id,
        role: row.role,
      },
    }
  }
}
