// Workspaces (spec §2.3, §5.7).

import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { IdentitySettings } from '../settings.ts'
import { workspaceRoutes } from './routes.ts'
import { createWorkspaceService } from './service.ts'

export type WorkspacesModuleContext = ModuleBase & {
  config: IdentitySettings
}

export function workspacesModule({ config, db, clock }: WorkspacesModuleContext): Module {
  const workspaces = createWorkspaceService({
    db,
    clock,
    isSignupOpen: config.signup,
    purgeDays: config.purgeDays,
  })
  return {
    routes: withTag('Workspace', workspaceRoutes({ workspaces })),
    workspaceTables: [{ table: 'users', key: 'id' }],
  }
}
