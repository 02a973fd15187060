// Sign-in by emailed codes, and dashboard sessions (spec §5.2, §5.3).
import type { CurrentSession } from '../../../shared/api/sessions.ts'
import type { BackgroundTasks } from '../../base/background-tasks.ts'
import type { Keyring } from '../../base/sealing/keyring.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { sendPage } from '../../http/pages/routes.ts'
import { withTag } from '../../http/route.ts'
import type { Replica } from '../../replicas/replica.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { IdentitySettings } from '../settings.ts'
import { hasAnyEmail } from '../store/members.ts'
import { createAccount, createDefaultName } from '../workspaces/create-account.ts'
import { createOwnerSecret } from './owner-secret.ts'
import { sessionRoutes, signInRoutes } from './routes.ts'
import { createSessions, type Sessions } from './sessions.ts'
import { createSignInPage } from './sign-in-page.ts'

export type SessionsModuleContext = ModuleBase & {
  config: IdentitySettings & { billing: CurrentSession['billing'] }
  mailer: Mailer
  background: BackgroundTasks
  keyring: Keyring
  replica: Pick<Replica, 'isShared'>
  /** No other coordinator uses the database. */
  isOnlyCoordinator: boolean
  /** `addressLimitFactor` multiplies the limits of sign-ins per client address. Default: 1. */
  overrides: { addressLimitFactor?: number }
}

export function sessionsModule(context: SessionsModuleContext) {
  const { config, db, clock, mailer, background, keyring, overrides } = context
  const { addressLimitFactor } = overrides
  const ownerSecret = createOwnerSecret({ db, keyring })
  const sessions: Sessions = createSessions({
    db,
    clock,
    mailer,
    background,
    ownerSecret,
    isShared: context.replica.isShared,
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
    async prepare() {
      await ownerSecret.prepare(context.isOnlyCoordinator)
      if (context.isOnlyCoordinator) await sessions.signIn.voidLinks()
    },
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
