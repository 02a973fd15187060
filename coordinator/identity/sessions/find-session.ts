// Finds the actor of a dashboard session, and stores that the session is used.
import type { Clock } from '../../../shared/clock.ts'
import type { BackgroundTasks } from '../../base/background-tasks.ts'
import type { Db } from '../../db/open.ts'
import type { SessionRow, UserRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import type { CredentialLookup, FindCredential } from '../../http/auth.ts'
import { updateUser } from '../store/users.ts'
import { getSessionExpiry, SESSION } from './lifetime.ts'
import {
  findSessionWithUser,
  prepareSessionByIdQuery,
  prepareSessionQuery,
  type SessionWithUser,
  storeUse,
} from './store.ts'

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
    if (!row) return { rejected: 'unknown' }
    const found = toLookup(row, clock.now())
    if ('actor' in found) touch(row)
    return found
  }
}

/** Finds the actor of a session by the id of the session, and does not store that the session is used. */
export function createSessionActorFinder({
  db,
  clock,
}: Pick<SessionFinderOptions, 'db' | 'clock'>): (id: string) => Promise<CredentialLookup> {
  const querySession = prepareSessionByIdQuery(db)
  return async (id) => {
    const [row] = await querySession(id)
    return row ? toLookup(row, clock.now()) : { rejected: 'unknown' }
  }
}

/** Finds the actor of a session by the id of the session. @param now milliseconds since the epoch */
export async function findSessionActor(trx: Trx, id: string, now: number): Promise<CredentialLookup> {
  const row = await findSessionWithUser(trx, id)
  return row ? toLookup(row, now) : { rejected: 'unknown' }
}

function toLookup(row: SessionWithUser, now: number): CredentialLookup {
  if (row.user_removed_at !== null || row.expires_at <= now) return { rejected: 'unknown' }
  return { actor: toActor(row, row.role) }
}

export const toActor = (session: SessionRow, role: UserRow['role']): Actor => ({
  credential: { type: 'session', id: session.id, expiresAt: session.expires_at },
  boxIds: null,
  access: null,
  workspaceId: session.workspace_id,
  userId: session.user_id,
  role,
})
