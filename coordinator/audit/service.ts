// Writes audit events (spec §2.7b), each in the transaction of the change that it records.
import type { CommandActor } from '../../shared/api/commands.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { insertAuditEvent } from './store.ts'

/** The kinds of audit events. */
export type AuditKind = 'command_history.delete'

/**
 * Converts an actor to its fields in audit events and command records. A machine key is created when the CLI signs in, so
 * its actor kind is `cli`.
 */
export const actorFields = ({ keyKind, userId, keyId }: Actor): CommandActor => ({
  kind: keyKind === 'machine' ? 'cli' : 'user',
  userId,
  tokenId: keyId,
})

export type AuditEvent = {
  kind: AuditKind
  actor: Actor
  boxId: string | null
  detail: Readonly<Record<string, string | number | boolean | null>>
  /** Milliseconds since the epoch. */
  at: number
}

export async function recordAuditEvent(
  trx: Trx,
  { kind, actor, boxId, detail, at }: AuditEvent,
): Promise<void> {
  const { kind: actorKind, userId, tokenId } = actorFields(actor)
  await insertAuditEvent(trx, {
    workspace_id: actor.workspaceId,
    at,
    kind,
    origin: 'server',
    actor_kind: actorKind,
    actor_user_id: userId,
    actor_token_id: tokenId,
    box_id: boxId,
    detail: JSON.stringify(detail),
  })
}
