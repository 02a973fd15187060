// Starts and ends sessions, in the transaction of the sign-in.
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../shared/clock.ts'
import { newId } from '../../../shared/ids.ts'
import { type AuditEvent, recordAuditEvent } from '../../audit/service.ts'
import type { SessionRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { recordAccessChange } from '../../http/access-changes.ts'
import type { Actor } from '../../http/actor.ts'
import { hashSecret } from '../../http/hash-secret.ts'
import type { Membership } from '../store/members.ts'
import { updateUser } from '../store/users.ts'
import { toActor } from './find-session.ts'
import { getSessionExpiry, SESSION } from './lifetime.ts'
import { deleteSession, findSessionByHash, insertSession, listSessionsOfUser } from './store.ts'

/** The properties of a request that identify its client. */
export type Client = {
  userAgent: string | null
  address: string | null
  /** The session cookie that came with the request. */
  token: string | undefined
}

export type NewSession = { session: SessionRow; token: string; user: Membership }

export type SessionStarter = ReturnType<typeof createSessionStarter>

const USER_AGENT_CHARS = 200

const createEvent = (
  kind: `session.${'sign_in' | 'sign_out' | 'switch'}`,
  actor: AuditEvent['actor'],
  detail: NonNullable<AuditEvent['detail']>,
  at: number,
): AuditEvent => ({ kind, actor, boxId: null, detail, at })

/** Transactions that lock the audit logs of several workspaces lock them in the same order. */
function recordSorted(trx: Trx, events: readonly AuditEvent[]): void {
  const sorted = events.toSorted((a, b) => (a.actor.workspaceId < b.actor.workspaceId ? -1 : 1))
  for (const event of sorted) recordAuditEvent(trx, event)
}

/** Returns the session with its token, which is stored only as a hash. */
async function insertNewSession(
  trx: Trx,
  now: number,
  user: Membership,
  values: Pick<SessionRow, 'user_agent' | 'address' | 'created_at'>,
): Promise<{ session: SessionRow; token: string }> {
  const token = `bws_${randomBytes(32).toString('base64url')}`
  const session: SessionRow = {
    id: newId('session'),
    hash: hashSecret(token),
    workspace_id: user.workspace_id,
    user_id: user.id,
    ...values,
    last_used_at: now,
    expires_at: getSessionExpiry(values.created_at, now),
  }
  await insertSession(trx, session)
  return { session, token }
}

/** Locks the user: call it before sessions are ended, in the order of the removal of a member. */
const recordActivity = (trx: Trx, user: Membership, at: number) =>
  updateUser(trx, user.id, { joined_at: user.joined_at ?? at, last_active_at: at })

export function createSessionStarter({ clock }: { clock: Clock }) {
  /** Returns whether the session existed. */
  async function end(trx: Trx, session: SessionRow): Promise<boolean> {
    const existed = await deleteSession(trx, session.id)
    recordAccessChange(trx, { workspaceId: session.workspace_id, credentialId: session.id })
    return existed
  }

  /** Ends the sessions above the limit. Returns the events to record. */
  async function endOldest(trx: Trx, userId: string, at: number): Promise<AuditEvent[]> {
    const sessions = (await listSessionsOfUser(trx, userId)).slice(SESSION.perUser)
    for (const session of sessions) await end(trx, session)
    return sessions.map(({ id, workspace_id: workspaceId }) =>
      createEvent('session.sign_out', { system: true, workspaceId }, { sessionId: id, userId }, at),
    )
  }

  return {
    end,

    /** Signs the user in. Ends the session of the client's cookie, which prevents session fixation. */
    async start(
      trx: Trx,
      user: Membership,
      { userAgent, address, token: earlierToken }: Client,
      method: 'code' | 'owner_key' | 'owner_link',
    ): Promise<NewSession> {
      const at = clock.now()
      await recordActivity(trx, user, at)
      const earlier =
        earlierToken === undefined ? undefined : await findSessionByHash(trx, hashSecret(earlierToken))
      if (earlier) await end(trx, earlier)
      const { session, token } = await insertNewSession(trx, clock.now(), user, {
        user_agent: userAgent?.slice(0, USER_AGENT_CHARS) ?? null,
        address,
        created_at: at,
      })
      const events = await endOldest(trx, user.id, at)
      if (earlier) {
        const actor = toActor(earlier, earlier.role)
        events.push(createEvent('session.sign_out', actor, { sessionId: earlier.id }, at))
      }
      const detail = { sessionId: session.id, method, address }
      events.push(createEvent('session.sign_in', toActor(session, user.role), detail, at))
      recordSorted(trx, events)
      return { session, token, user }
    },

    /** Replaces the session by one of the same person in another workspace. The time of the sign-in stays. */
    async move(trx: Trx, earlier: SessionRow, actor: Actor, user: Membership): Promise<NewSession> {
      const at = clock.now()
      await recordActivity(trx, user, at)
      await end(trx, earlier)
      const { user_agent, address, created_at } = earlier
      const values = { user_agent, address, created_at }
      const { session, token } = await insertNewSession(trx, clock.now(), user, values)
      const newActor = toActor(session, user.role)
      // An event does not name the other workspace: its members may not learn of which others the person is a member.
      recordSorted(trx, [
        ...(await endOldest(trx, user.id, at)),
        createEvent('session.switch', actor, { sessionId: earlier.id, to: 'other' }, at),
        createEvent('session.switch', newActor, { sessionId: session.id, to: 'this' }, at),
      ])
      return { session, token, user }
    },
  }
}
