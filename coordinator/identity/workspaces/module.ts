// Workspaces (spec §2.3, §5.7).

import type { Module, ModuleBase } from '../../http/module.ts'
import type { OpenRequests } from '../../http/open-requests.ts'
import { withTag } from '../../http/route.ts'
import type { Scheduler } from '../../jobs/scheduler.ts'
import type { IdentitySettings } from '../settings.ts'
import { workspaceRoutes } from './routes.ts'
import { createWorkspaceService } from './service.ts'

export type WorkspacesModuleContext = ModuleBase & {
  config: IdentitySettings
  scheduler: Pick<Scheduler, 'scheduleAt'>
  openRequests: Pick<OpenRequests, 'accessChanged'>
}

export function workspacesModule({
  config,
  db,
  clock,
  scheduler,
  openRequests,
}: WorkspacesModuleContext): Module {
  const workspaces = createWorkspaceService({
    db,
    clock,
    isSignupOpen: config.signup,
    purgeDays: config.purgeDays,
    onSchedule: scheduler.scheduleAt,
    openRequests,
  })
  return {
    routes: withTag('Workspace', workspaceRoutes({ workspaces })),
    workspaceTables: [{ table: 'users', key: 'id' }],
  }
}
