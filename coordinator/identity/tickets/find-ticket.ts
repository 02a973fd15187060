// Finds the actor of a terminal ticket (spec §5.10).
import type { Clock } from '../../../shared/clock.ts'
import type { Db } from '../../db/open.ts'
import type { ActorIdentity } from '../../http/actor.ts'
import type { FindCredential } from '../../http/auth.ts'
import { prepareTicketQuery, type TicketWithUser } from './store.ts'

const toIdentity = ({ id, workspace_id, user_id }: TicketWithUser): ActorIdentity => ({
  credential: { type: 'ticket', id },
  workspaceId: workspace_id,
  userId: user_id,
})

/** A ticket acts as its user on one box, until it expires or its session ends. */
export function createTicketFinder({ db, clock }: { db: Db; clock: Clock }): FindCredential {
  const queryTicket = prepareTicketQuery(db)
  return async (hash) => {
    const [row] = await queryTicket(hash)
    if (!row) return { rejected: 'unknown' }
    if (row.user_removed_at !== null) return { rejected: 'revoked', identity: toIdentity(row) }
    if (row.expires_at <= clock.now())
      return { rejected: 'expired', expiresAt: row.expires_at, identity: toIdentity(row) }
    return {
      actor: {
        credential: { type: 'ticket', id: row.id, expiresAt: row.expires_at },
        boxIds: [row.box_id],
        access: null,
        workspaceId: row.workspace_id,
        userId: row.user_id,
        role: row.role,
      },
    }
  }
}
