// Policies of workspaces (spec §2.9, §4.11).
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import { policyRoutes } from './routes.ts'
import { createPolicyService, type PolicyService } from './service.ts'

export function policiesModule({ db, clock }: ModuleBase) {
  const policies: PolicyService = createPolicyService({ db, clock })
  return {
    services: { policies },
    routes: withTag('Workspace', policyRoutes({ policies })),
    workspaceTables: [{ table: 'policies', key: null }],
  } satisfies Module
}
