// Records changes of boxes and snapshots. The detail has the name, because the row of a deleted box is removed later.
import type { ServerAuditKind } from '../../shared/audit-kinds.ts'
import type { BoxRow, SnapshotRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { type AuditDetail, recordAuditEvent } from './service.ts'

type KindOf<Resource extends string> = Extract<ServerAuditKind, `${Resource}.${string}`>

export type ChangedBy = {
  /** system: what the coordinator does by itself. */
  actor: Actor | 'system'
  /** Milliseconds since the epoch. */
  now: number
}

const toEventActor = (actor: Actor | 'system', workspaceId: string) =>
  actor === 'system' ? ({ system: true, workspaceId } as const) : actor

export function recordBoxChange(
  trx: Trx,
  kind: KindOf<'box'> | 'snapshot.restore',
  { id, hostname, workspace_id }: Pick<BoxRow, 'id' | 'hostname' | 'workspace_id'>,
  { actor, now }: ChangedBy,
  detail: AuditDetail = {},
): void {
  recordAuditEvent(trx, {
    kind,
    actor: toEventActor(actor, workspace_id),
    boxId: id,
    detail: { name: hostname, ...detail },
    at: now,
  })
}

/** The event is one of the box whose files the snapshot has. */
export function recordSnapshotChange(
  trx: Trx,
  kind: KindOf<'snapshot'> | KindOf<'template'>,
  { id, name, box_id, workspace_id }: Pick<SnapshotRow, 'id' | 'name' | 'box_id' | 'workspace_id'>,
  { actor, now }: ChangedBy,
  detail: AuditDetail = {},
): void {
  recordAuditEvent(trx, {
    kind,
    actor: toEventActor(actor, workspace_id),
    boxId: box_id,
    detail: { snapshotId: id, name, ...detail },
    at: now,
  })
}
