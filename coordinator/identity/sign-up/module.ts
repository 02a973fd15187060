// Sign-up of agents: accounts with an API key, which an emailed code verifies (spec §5.2, §5.3).

import type { BackgroundTasks } from '../../base/background-tasks.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { IdentitySettings } from '../settings.ts'
import { type AgentAccounts, createAgentAccounts } from './agent-accounts.ts'
import { agentAccountRoutes } from './routes.ts'

export type SignUpModuleContext = ModuleBase & {
  config: IdentitySettings
  sessions: Sessions
  mailer: Mailer
  background: BackgroundTasks
}

export function signUpModule(context: SignUpModuleContext) {
  const { config, db, clock, sessions, mailer, background } = context
  const isSignupOpen = config.signup
  const agentAccounts: AgentAccounts = createAgentAccounts({
    db,
    clock,
    sessions,
    mailer,
    background,
    isSignupOpen,
  })
  return {
    services: { agentAccounts },
    routes: withTag('Sign-in', agentAccountRoutes({ agentAccounts })),
    schedules: { pruners: { agent_accounts: agentAccounts.prune } },
  } satisfies Module
}
