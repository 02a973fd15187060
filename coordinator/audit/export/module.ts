// The delivery of the audit log to an HTTPS endpoint (spec §5.7, §6).

import type { Trx } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { AuditSettings } from '../settings.ts'
import { type AuditExportOverrides, createAuditExport } from './audit-export.ts'
import type { DeliveriesOptions } from './deliveries.ts'
import { auditSinkRoutes } from './routes.ts'

export type AuditExportModuleContext = ModuleBase & {
  config: AuditSettings
  replica: DeliveriesOptions['replica']
  /** Throws workspace_closing. */
  assertOpen(trx: Trx, workspaceId: string): Promise<void>
  /** Throws unauthorized or not_allowed for an actor that has lost its rights. */
  confirmActor(trx: Trx, actor: Actor, now: number): Promise<unknown>
  overrides: { auditExport?: AuditExportOverrides }
}

export function auditExportModule(context: AuditExportModuleContext): Module {
  const { config, db, clock, log, replica, overrides } = context
  const auditExport = createAuditExport({
    db,
    clock,
    log,
    replica,
    allowsPrivate: config.auditSinkPrivate,
    overrides: overrides.auditExport,
    assertOpen: context.assertOpen,
    confirmActor: context.confirmActor,
  })
  return {
    routes: withTag('Audit log', auditSinkRoutes({ auditSink: auditExport.service })),
    workspaceTables: [{ table: 'audit_sinks', key: null }],
    start: auditExport.start,
    close: { name: 'stop delivering audit logs', run: auditExport.close },
  }
}
