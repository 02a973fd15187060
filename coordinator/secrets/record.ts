// The audit events of secrets. None has a value.
import { type AuditDetail, recordAuditEvent } from '../audit/service.ts'
import type { SecretRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'

export function recordSecretChange(
  trx: Trx,
  kind: `secret.${'create' | 'update' | 'rotate' | 'delete' | 'grant' | 'ungrant'}`,
  actor: Actor,
  { id, name }: Pick<SecretRow, 'id' | 'name'>,
  at: number,
  detail: AuditDetail = {},
  boxId: string | null = null,
): void {
  recordAuditEvent(trx, { kind, actor, boxId, detail: { secretId: id, name, ...detail }, at })
}
