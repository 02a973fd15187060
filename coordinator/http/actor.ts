// The identity and permissions of an authenticated request (spec §5).
import type { AccessLevels, Role } from '../../shared/api/account.ts'
import type { Subject } from '../base/slots.ts'

/** What the request was authenticated with. Instants are milliseconds since the epoch. */
export type Credential =
  | {
      type: 'key'
      id: string
      kind: 'machine' | 'api'
      expiresAt: number | null
      /** The emailed code of a new agent account is not confirmed yet (spec §5.3). */
      isUnverified: boolean
    }
  | { type: 'session'; id: string; expiresAt: number }
  /** A terminal ticket for one box (spec §5.10). */
  | { type: 'ticket'; id: string; expiresAt: number }

export type Actor = {
  credential: Credential
  /** The boxes that a limited key or a ticket covers; null: all boxes. */
  boxIds: readonly string[] | null
  /** The levels of a limited key; null: everything that its role allows. */
  access: AccessLevels | null
  workspaceId: string
  userId: string | null
  role: Role
}

/** The part of an actor that is recorded. It is also known of a credential that is not accepted any more. */
export type ActorIdentity = Pick<Actor, 'workspaceId' | 'userId'> & {
  credential:
    | { type: 'key'; id: string; kind: 'machine' | 'api' }
    | { type: 'session' | 'ticket'; id: string }
}

/** The form in which events and records store an actor. */
export const formatActor = ({ userId, credential }: Actor): string =>
  userId ? `user:${userId}` : `key:${credential.id}`

/** Whose slots the actor uses. */
export const toSubject = ({ credential, userId, workspaceId }: Actor): Subject => ({
  credentialId: credential.id,
  userId,
  workspaceId,
})
