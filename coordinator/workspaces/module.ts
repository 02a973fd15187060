// Workspaces and their members (spec §2.3, §5.7).

import type { Module, ModuleBase } from '../http/module.ts'
import type { OpenRequests } from '../http/open-requests.ts'
import { withTag } from '../http/route.ts'
import type { Scheduler } from '../jobs/scheduler.ts'
import type { Mailer } from '../mail/mailer.ts'
import { memberRoutes } from '../members/routes.ts'
import { createMemberService, type MemberServiceOptions } from '../members/service.ts'
import { workspaceRoutes } from './routes.ts'
import { createWorkspaceService } from './service.ts'

export type WorkspacesModuleContext = ModuleBase & {
  mailer: Mailer
  openRequests: Pick<OpenRequests, 'accessChanged'>
  scheduler: Pick<Scheduler, 'scheduleAt'>
  restrictBoxesOf: MemberServiceOptions['restrictBoxesOf']
  /** `public`: the origin at which clients reach the coordinator. */
  urls: { public: string }
}

export function workspacesModule(context: WorkspacesModuleContext): Module {
  const { config, db, clock, mailer, openRequests, scheduler, restrictBoxesOf, urls } = context
  const members = createMemberService({
    db,
    clock,
    openRequests,
    restrictBoxesOf,
    sendMail: config.smtpUrl === null ? null : mailer.send,
    publicUrl: urls.public,
  })
  const workspaces = createWorkspaceService({
    db,
    clock,
    isSignupOpen: config.signup,
    purgeDays: config.purgeDays,
    onSchedule: scheduler.scheduleAt,
  })
  return {
    routes: [
      ...withTag('Members', memberRoutes({ members })),
      ...withTag('Workspace', workspaceRoutes({ workspaces })),
    ],
    workspaceTables: [{ table: 'users', key: 'id' }],
  }
}
