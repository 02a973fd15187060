// Converts rows of the audit log to events of the API.
import type { AuditChainEvent, AuditEvent } from '../../shared/api/audit.ts'
import { toTimestamp } from '../../shared/clock.ts'
import type { AuditEventRow } from '../db/schema.ts'

const presentCommonFields = (row: AuditEventRow) => ({
  id: row.no,
  at: toTimestamp(row.at),
  kind: row.kind,
  origin: row.origin,
  actorKind: row.actor_kind,
  actorUserId: row.actor_user_id,
  actorTokenId: row.actor_token_id,
  boxId: row.box_id,
  hash: row.hash,
})

export const presentEvent = (row: AuditEventRow): AuditEvent => ({
  ...presentCommonFields(row),
  detail: row.detail === null ? {} : JSON.parse(row.detail),
})

export const presentChainEvent = (row: AuditEventRow): AuditChainEvent => ({
  ...presentCommonFields(row),
  detail: row.detail,
  salt: row.salt,
  detailHash: row.detail_hash,
})
