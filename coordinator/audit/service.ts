// Records audit events (spec §2.7b), each in the transaction of the change that it records.
import type { AuditActorKind } from '../../shared/api/audit.ts'
import type { CommandActor } from '../../shared/api/commands.ts'
import { sealAuditEvent } from '../../shared/audit-chain.ts'
import type { AuditKind } from '../../shared/audit-kinds.ts'
import { defineTopic, notify, type SubscribeOptions, subscribe } from '../db/notifications.ts'
import type { Db } from '../db/open.ts'
import { beforeCommit, type Trx } from '../db/transaction.ts'
import { hasZeroDataRetention } from '../db/zero-data-retention.ts'
import type { Actor, ActorIdentity } from '../http/actor.ts'
import { insertAuditEvent, lockHead, updateHead } from './store.ts'

/**
 * Converts an actor to its fields in audit events. A machine key is created when the CLI signs in, so its actor kind is
 * `cli`.
 */
export function auditActorFields({ credential, userId }: ActorIdentity): {
  kind: AuditActorKind
  userId: string | null
  tokenId: string | null
} {
  const isCli = credential.type === 'key' && credential.kind === 'machine'
  const kind = credential.type === 'ticket' ? 'ticket' : isCli ? 'cli' : 'user'
  return { kind, userId, tokenId: credential.id }
}

/** The fields of an actor in command records, which know only `user` and `cli`. */
export function actorFields(actor: Actor): CommandActor {
  const { kind, ...fields } = auditActorFields(actor)
  return { ...fields, kind: kind === 'cli' ? 'cli' : 'user' }
}

export type AuditDetail = Readonly<Record<string, string | number | boolean | null>>

export type AuditEvent = {
  kind: AuditKind
  /** `system` with the workspace for what the coordinator does by itself. */
  actor: ActorIdentity | { system: true; workspaceId: string }
  boxId: string | null
  /** The detail never contains a secret, a key or a command. */
  detail: AuditDetail
  /** Milliseconds since the epoch. */
  at: number
  /** Default: server. */
  origin?: 'server' | 'client'
}

const AUDIT_EVENTS = defineTopic<{ workspaceId: string }>('audit events')

/** Calls the listener after each commit that has recorded events. See subscribe(). */
export const subscribeToAuditEvents = (
  db: Db,
  listener: (workspaceId: string) => void,
  options: SubscribeOptions,
): (() => void) => subscribe(db, AUDIT_EVENTS, ({ workspaceId }) => listener(workspaceId), options)

/**
 * Inserts the event at the end of the transaction. Its number is known only then, and passed to `onRecorded`.
 */
export function recordAuditEvent(trx: Trx, event: AuditEvent, onRecorded?: (no: number) => void): void {
  const { kind, actor, boxId, detail, at, origin = 'server' } = event
  const { workspaceId } = actor
  const { kind: actorKind, userId, tokenId } = 'system' in actor ? SYSTEM : auditActorFields(actor)
  beforeCommit(trx, async () => {
    const head = await lockHead(trx, workspaceId)
    // The coordinator's own events have only ids, settings and names. Clients may report what a user has written.
    const isBlank = origin === 'client' && (await hasZeroDataRetention(trx, workspaceId))
    const row = sealAuditEvent(
      {
        workspace_id: workspaceId,
        no: head.no + 1,
        at: Math.max(at, head.at),
        kind,
        origin,
        actor_kind: actorKind,
        actor_user_id: userId,
        actor_token_id: tokenId,
        box_id: boxId,
        detail: JSON.stringify(isBlank ? {} : detail),
      },
      head.hash,
    )
    await insertAuditEvent(trx, row)
    await updateHead(trx, row)
    onRecorded?.(row.no)
    notify(trx, AUDIT_EVENTS, { workspaceId })
  })
}

const SYSTEM = { kind: 'system', userId: null, tokenId: null } as const
