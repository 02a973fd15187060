// The delivery of the audit log to an HTTPS endpoint (spec §5.7, §6).
import type { Trx } from '../../db/transaction.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import { type AuditExportOverrides, createAuditExport } from './audit-export.ts'
import { auditSinkRoutes } from './routes.ts'

export type AuditExportModuleContext = ModuleBase & {
  /** Throws workspace_closing. */
  assertOpen(trx: Trx, workspaceId: string): Promise<void>
  overrides: { auditExport?: AuditExportOverrides }
}

export function auditExportModule(context: AuditExportModuleContext): Module {
  const { config, db, clock, log, overrides } = context
  const auditExport = createAuditExport({
    db,
    clock,
    log,
    allowsPrivate: config.auditSinkPrivate,
    overrides: overrides.auditExport,
    assertOpen: context.assertOpen,
  })
  return {
    routes: withTag('Audit log', auditSinkRoutes({ auditSink: auditExport.service })),
    workspaceTables: [{ table: 'audit_sinks', key: null }],
    start: auditExport.start,
    close: { name: 'stop delivering audit logs', run: auditExport.close },
  }
}
