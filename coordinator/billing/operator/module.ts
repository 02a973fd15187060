// What operators do with the accounts of workspaces.
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { Billing } from '../billing.ts'
import { operatorRoutes } from './routes.ts'
import { createOperatorService } from './service.ts'

export type OperatorModuleContext = ModuleBase & {
  billing: Billing
}

export function operatorModule({ db, clock, billing }: OperatorModuleContext): Module {
  const operator = createOperatorService({ db, clock, billing })
  return { routes: withTag('Operator', operatorRoutes({ operator })) }
}
