// The audit log (spec §4.12), and the record of refused requests in it.
import type { BoxFinder } from '../http/find-box.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import { withTag } from '../http/route.ts'
import { type AuditLog, createAuditLog } from './audit-log.ts'
import { createDenials, type Denials } from './denials.ts'
import { type AuditPruneOptions, pruneAuditLog } from './prune.ts'
import { auditRoutes } from './routes.ts'

export type AuditModuleContext = ModuleBase & {
  boxFinder: BoxFinder
  loadRetentionDays: AuditPruneOptions['loadRetentionDays']
}

export function auditModule({ db, clock, log, boxFinder, loadRetentionDays }: AuditModuleContext) {
  const denials: Denials = createDenials({ db, clock, log })
  const audit: AuditLog = createAuditLog({ db, clock, boxes: boxFinder })
  return {
    services: { audit, denials },
    routes: withTag('Audit log', auditRoutes({ audit, clock })),
    schedules: {
      pruners: {
        audit_log: (signal: AbortSignal) => pruneAuditLog({ db, clock, loadRetentionDays }, signal),
      },
    },
    workspaceTables: [
      { table: 'audit_heads', key: null },
      { table: 'audit_log', key: 'no' },
    ],
    close: { name: 'record the last refused requests', run: denials.close },
  } satisfies Module
}
