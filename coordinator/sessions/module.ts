// Sign-in by emailed codes, dashboard sessions, and the accounts of agents (spec §5.2, §5.3).

import { type AgentAccounts, createAgentAccounts } from '../accounts/agent-accounts.ts'
import { createAccount, createDefaultName } from '../accounts/create-account.ts'
import { agentAccountRoutes } from '../accounts/routes.ts'
import type { BackgroundTasks } from '../background-tasks.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import type { OpenRequests } from '../http/open-requests.ts'
import { withTag } from '../http/route.ts'
import type { Mailer } from '../mail/mailer.ts'
import { sessionRoutes, signInRoutes } from './routes.ts'
import { createSessions, type Sessions } from './sessions.ts'

export type SessionsModuleContext = ModuleBase & {
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
  const agentAccounts: AgentAccounts = createAgentAccounts({
    db,
    clock,
    sessions,
    mailer,
    background,
    isSignupOpen: config.signup,
  })
  return {
    services: { sessions, agentAccounts },
    routes: withTag('Sign-in', [
      ...signInRoutes({ sessions }),
      ...sessionRoutes({ sessions }),
      ...agentAccountRoutes({ agentAccounts }),
    ]),
    schedules: { pruners: { sessions: sessions.prune, agent_accounts: agentAccounts.prune } },
    workspaceTables: [{ table: 'sessions', key: 'id', isCredential: true }],
  } satisfies Module
}
