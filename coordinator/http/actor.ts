// The identity and permissions of an authenticated request, read from its API key (spec §5).
import type { AccessLevels } from '../../shared/api/account.ts'

export type Actor = {
  keyId: string
  keyKind: 'machine' | 'api'
  /** Milliseconds since the epoch. */
  keyExpiresAt: number | null
  /** The boxes that a limited key covers; null: all boxes. */
  boxIds: readonly string[] | null
  /** The levels of a limited key; null: everything that its role allows. */
  access: AccessLevels | null
  workspaceId: string
  userId: string | null
  role: 'owner' | 'member' | 'contractor'
}

/** The form in which events and records store an actor. */
export const formatActor = (actor: Actor): string =>
  actor.userId ? `user:${actor.userId}` : `key:${actor.keyId}`
