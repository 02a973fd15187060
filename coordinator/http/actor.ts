// Who a request acts as: what the bearer key says, checked anew on every request (spec §5).
import type { AccessLevels } from '../../shared/api/account.ts'

export type Actor = {
  keyId: string
  keyKind: 'machine' | 'api'
  keyExpiresAt: number | null
  /** The boxes a limited key is limited to, else null. */
  boxIds: readonly string[] | null
  /** Levels of a limited key, else null: everything its role allows. */
  access: AccessLevels | null
  workspaceId: string
  userId: string | null
  role: 'owner' | 'member' | 'contractor'
}

/** How events and records name an actor. */
export const actorName = (actor: Actor): string =>
  actor.userId ? `user:${actor.userId}` : `key:${actor.keyId}`
