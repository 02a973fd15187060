// The audit log (spec §2.7b): who did what, written in the transaction of what was done.
import type { CommandActor } from '../../shared/api/commands.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { insertEvent } from './store.ts'

/** What this service itself writes down. */
export type AuditKind = 'command_history.delete'

/** Who acted, as audit events and command records name it: a key made by signing in is the CLI. */
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
  at: number
}

export async function recordAudit(trx: Trx, { kind, actor, boxId, detail, at }: AuditEvent): Promise<void> {
  const who = actorFields(actor)
  await insertEvent(trx, {
    workspace_id: actor.workspaceId,
    at,
    kind,
    origin: 'server',
    actor_kind: who.kind,
    actor_user_id: who.userId,
    actor_token_id: who.tokenId,
    box_id: boxId,
    detail: JSON.stringify(detail),
  })
}
