// All edge routes.
import type { Route } from '../http/route.ts'
import { attachRoutes } from './attach.ts'
import type { EdgeContext } from './context.ts'
import { execRoutes } from './exec.ts'
import { fileRoutes } from './files.ts'
import { processRoutes } from './processes.ts'
import { streamRoutes } from './stream.ts'
import { terminalRoutes } from './terminal.ts'

export const edgeRoutes = (context: EdgeContext): Route[] => [
  ...execRoutes(context),
  ...processRoutes(context),
  ...streamRoutes(context),
  ...attachRoutes(context),
  ...terminalRoutes(context),
  ...fileRoutes(context),
]
