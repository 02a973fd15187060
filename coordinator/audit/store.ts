// Queries on the audit log.
import type { Insertable } from 'kysely'
import type { AuditEventRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

export const insertAuditEvent = (trx: Trx, row: Insertable<AuditEventRow>) =>
  trx.insertInto('audit_events').values(row).execute()
