// The delivery of the audit log to an HTTPS endpoint (spec §5.7, §6).
import type { Module, ModuleBase } from '../http/module.ts'
import { withTag } from '../http/route.ts'
import { type AuditExportOverrides, createAuditExport } from './audit-export.ts'
import { auditSinkRoutes } from './routes.ts'

export function auditExportModule(
  context: ModuleBase & { overrides: { auditExport?: AuditExportOverrides } },
): Module {
  const { config, db, clock, log, overrides } = context
  const auditExport = createAuditExport({
    db,
    clock,
    log,
    allowsPrivate: config.auditSinkPrivate,
    overrides: overrides.auditExport,
  })
  return {
    routes: withTag('Audit log', auditSinkRoutes({ auditSink: auditExport.service })),
    workspaceTables: [{ table: 'audit_sinks', key: null }],
    start: auditExport.start,
    close: { name: 'stop delivering audit logs', run: auditExport.close },
  }
}
