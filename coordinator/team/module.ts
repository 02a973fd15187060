// The team status (spec §4.13).

import type { Heartbeats } from '../boxes/lifecycle/heartbeats.ts'
import type { Trx } from '../db/transaction.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import { withTag } from '../http/route.ts'
import { type CountSessionsOptions, createCountSessions } from './count-sessions.ts'
import { teamRoutes } from './routes.ts'
import { createTeamService, type TeamService, type TeamServiceOptions } from './service.ts'
import { deleteLastPrompt } from './store.ts'

export type TeamModuleContext = ModuleBase &
  Pick<TeamServiceOptions, 'members' | 'billing'> & {
    heartbeats: Pick<Heartbeats, 'latest'>
    attachments: Pick<CountSessionsOptions, 'countByUser'>
    peers: CountSessionsOptions['peers']
  }

export function teamModule(context: TeamModuleContext) {
  const { db, clock, log, members, heartbeats, attachments, billing, peers } = context
  const team: TeamService = createTeamService({
    db,
    clock,
    log,
    members,
    billing,
    latestHeartbeat: heartbeats.latest,
    countSessions: createCountSessions({ log, countByUser: attachments.countByUser, peers }),
  })
  return {
    services: { team },
    routes: withTag('Team', teamRoutes({ team })),
    workspaceTables: [{ table: 'last_prompts', key: 'box_id' }],
    deleteOfBox: (trx: Trx, boxId: string) => deleteLastPrompt(trx, boxId),
  } satisfies Module
}
