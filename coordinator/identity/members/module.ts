// The members of workspaces (spec §2.3, §5.7).

import type { Module, ModuleBase, ModuleRegistry } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { IdentitySettings } from '../settings.ts'
import { memberRoutes } from './routes.ts'
import { createMemberService, type MemberService, type MemberServiceOptions } from './service.ts'

export type MembersModuleContext = ModuleBase & { config: IdentitySettings } & Pick<
    MemberServiceOptions,
    'restrictBoxesOf' | 'hasUnrestrictedBoxes'
  > & {
    mailer: Mailer
    modules: Pick<ModuleRegistry, 'removeMember'>
    /** `public`: the origin at which clients reach the coordinator. */
    urls: { public: string }
  }

export function membersModule(context: MembersModuleContext) {
  const { config, db, clock, mailer, modules, urls } = context
  const { restrictBoxesOf, hasUnrestrictedBoxes } = context
  const members: MemberService = createMemberService({
    db,
    clock,
    restrictBoxesOf,
    hasUnrestrictedBoxes,
    onRemove: modules.removeMember,
    sendMail: config.smtpUrl === null ? null : mailer.send,
    publicUrl: urls.public,
  })
  return {
    services: { members },
    routes: withTag('Members', memberRoutes({ members })),
  } satisfies Module
}
