// Operations (spec §4.7).
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import { operationRoutes } from './routes.ts'
import { createOperationService, type OperationServiceOptions } from './service.ts'

export type OperationsModuleContext = ModuleBase & {
  findOperationTarget: OperationServiceOptions['findTarget']
}

export function operationsModule({ db, clock, findOperationTarget }: OperationsModuleContext): Module {
  const operations = createOperationService({ db, clock, findTarget: findOperationTarget })
  return {
    routes: withTag('Operations', operationRoutes({ operations })),
    schedules: { pruners: { operations: operations.prune } },
    workspaceTables: [{ table: 'operations', key: 'id' }],
  }
}
