// The rules of sessions that exist (spec §5): who may list, switch and end them.
import type { CurrentSession, Session } from '../../../shared/api/sessions.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import { lockWorkspace } from '../../db/lock-workspace.ts'
import type { Db } from '../../db/open.ts'
import type { SessionRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import { recordDeletion, wasDeleted } from '../../http/deletions.ts'
import { confirmActor } from '../confirm-actor.ts'
import { findMembership, listMemberships, type Membership } from '../store/members.ts'
import { presentSession, presentSignedIn } from './present.ts'
import type { NewSession, SessionStarter } from './start-session.ts'
import { findSessionById, listSessionsOfUser } from './store.ts'

export type SessionService = {
  load(actor: Actor): Promise<Omit<CurrentSession, 'billing'>>
  list(actor: Actor): Promise<Session[]>
  /** Ends a session of the actor's user. */
  end(actor: Actor, sessionId: string): Promise<void>
  switchWorkspace(actor: Actor, workspaceId: string): Promise<NewSession>
}

export type SessionServiceOptions = { db: Db; clock: Clock; starter: SessionStarter }

export function createSessionService({ db, clock, starter }: SessionServiceOptions): SessionService {
  /** @throws ApiError unauthorized when the session has ended meanwhile */
  async function findCurrent(
    database: Db | Trx,
    { credential, userId }: Actor,
  ): Promise<{ session: SessionRow; user: Membership }> {
    const session = await findSessionById(database, credential.id)
    const user = userId === null ? undefined : await findMembership(database, userId)
    if (session === undefined || user === undefined) throw new ApiError('unauthorized')
    return { session, user }
  }

  const listOfPerson = async (database: Db | Trx, user: Membership): Promise<Membership[]> =>
    user.email === null ? [user] : listMemberships(database, user.email)

  return {
    async load(actor) {
      const { session, user } = await findCurrent(db, actor)
      const memberships = await listOfPerson(db, user)
      return {
        ...presentSignedIn(session, user),
        workspaces: memberships
          .map(({ workspace_id, workspace_name, role }) => ({ id: workspace_id, name: workspace_name, role }))
          .sort((a, b) => a.name.localeCompare(b.name) || (a.id < b.id ? -1 : 1)),
      }
    },

    async list({ userId, credential }) {
      const now = clock.now()
      const rows = userId === null ? [] : await listSessionsOfUser(db, userId)
      return rows.filter((row) => row.expires_at > now).map((row) => presentSession(row, credential.id))
    },

    end: (actor, sessionId) =>
      transaction(db, async (trx) => {
        // confirmActor() locks the workspace first too. So a change of the session ends before this one, or is refused.
        await lockWorkspace(trx, actor.workspaceId)
        const session = await findSessionById(trx, sessionId)
        const exists = session?.user_id === actor.userId && (await starter.end(trx, session))
        // The current session may have ended since its authentication.
        if (!exists && sessionId === actor.credential.id) throw new ApiError('unauthorized')
        const resourceId = `${actor.userId}/${sessionId}`
        if (!exists && (await wasDeleted(trx, actor, resourceId))) return
        if (!exists) throw new ApiError('not_found')
        await recordDeletion(trx, actor, resourceId, clock.now())
        recordAuditEvent(trx, {
          kind: 'session.sign_out',
          actor,
          boxId: null,
          detail: { sessionId },
          at: clock.now(),
        })
      }),

    switchWorkspace: (actor, workspaceId) =>
      transaction(db, async (trx) => {
        await confirmActor(trx, actor, clock.now())
        const { session, user } = await findCurrent(trx, actor)
        const memberships = await listOfPerson(trx, user)
        const target = memberships.find(({ workspace_id }) => workspace_id === workspaceId)
        if (target === undefined)
          throw new ApiError('not_found', 'You are not a member of this workspace. GET /session lists yours.')
        return starter.move(trx, session, actor, target)
      }),
  }
}
