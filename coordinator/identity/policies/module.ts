// Policies of workspaces (spec §2.9, §4.11).
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import { policyRoutes } from './routes.ts'
import { createPolicyService } from './service.ts'

export const policiesModule = ({ db, clock }: ModuleBase): Module => ({
  routes: withTag('Workspace', policyRoutes({ policies: createPolicyService({ db, clock }) })),
  workspaceTables: [{ table: 'policies', key: null }],
})
