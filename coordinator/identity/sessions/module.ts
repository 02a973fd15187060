// Sign-in by emailed codes, and dashboard sessions (spec §5.2, §5.3).
import type { CurrentSession } from '../../../shared/api/sessions.ts'
import type { BackgroundTasks } from '../../base/background-tasks.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import type { OpenRequests } from '../../http/open-requests.ts'
import { sendPage } from '../../http/pages/routes.ts'
import { withTag } from '../../http/route.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { IdentitySettings } from '../settings.ts'
import { hasAnyEmail } from '../store/members.ts'
import { createAccount, createDefaultName } from '../workspaces/create-account.ts'
import { sessionRoutes, signInRoutes } from './routes.ts'
import { createSessions, type Sessions } from './sessions.ts'
import { createSignInPage } from './sign-in-page.ts'

export type SessionsModuleContext = ModuleBase & {
  config: IdentitySettings & { billing: CurrentSession['billing'] }
  mailer: Mailer
  background: BackgroundTasks
  openRequests: OpenRequests
  /** `addressLimitFactor` multiplies the limits of sign-ins per client address. Default: 1. */
  overrides: { addressLimitFactor?: number }
}

export function sessionsModule(context: SessionsModuleContext) {
  const { config, db, clock, mailer, background, openRequests, overrides } = context
  const { addressLimitFactor } = overrides
  const sessions: Sessions = createSessions({
    db,
    clock,
    mailer,
    background,
    openRequests,
    createAccount: config.signup
      ? async (trx, email) => {
          const account = { email, name: createDefaultName(email), now: clock.now() }
          return { userId: (await createAccount(trx, account)).user.id }
        }
      : null,
    ...(addressLimitFactor !== undefined && { addressLimitFactor }),
  })
  return {
    services: { sessions },
    routes: withTag('Sign-in', [
      ...signInRoutes({ sessions }),
      ...sessionRoutes({ sessions, billing: config.billing }),
    ]),
    publicRoutes: [
      {
        path: '/sign-in',
        handler: async (_request, reply) =>
          sendPage(reply, createSignInPage({ isOwnerFirst: !(await hasAnyEmail(db)) })),
      },
    ],
    schedules: { pruners: { sessions: sessions.prune } },
    workspaceTables: [{ table: 'sessions', key: 'id', isCredential: true }],
  } satisfies Module
}
