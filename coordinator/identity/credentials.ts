// The credentials that requests are authenticated with: API keys, dashboard sessions and tickets. Ends open requests whose
// credential is revoked.

import type { BackgroundTasks } from '../base/background-tasks.ts'
import { readOwnerKey } from '../base/data-directory.ts'
import type { BaseSettings } from '../base/settings.ts'
import { subscribeToAccessChanges } from '../http/access-changes.ts'
import type { CredentialFinders, CredentialLookup } from '../http/auth.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import { createOpenRequests } from '../http/open-requests.ts'
import type { Peers } from '../replicas/peers.ts'
import { createAssertOperator } from './assert-operator.ts'
import { createKeyUses } from './keys/key-uses.ts'
import { createKeyActorFinder, createKeyFinder } from './keys/keys.ts'
import { createSessionActorFinder, createSessionFinder } from './sessions/find-session.ts'
import { createTicketFinder } from './tickets/find-ticket.ts'

export type CredentialsModuleContext = ModuleBase & { config: Pick<BaseSettings, 'dataDir'> } & {
  background: BackgroundTasks
  /** null: this is the only coordinator of the database. */
  peers: Peers | null
}

export function credentialsModule(context: CredentialsModuleContext) {
  const { config, db, clock, log, background, peers } = context
  const keyUses = createKeyUses({ db, clock, log })
  const finders: CredentialFinders = {
    findKey: createKeyFinder({ db, clock, onUse: keyUses.record }),
    findSession: createSessionFinder({ db, clock, background }),
    findTicket: createTicketFinder({ db, clock }),
  }
  const findKeyActor = createKeyActorFinder({ db, clock })
  const findSessionActor = createSessionActorFinder({ db, clock })
  /** Finds the actor of a credential by its id, without recording a use. */
  const findActor = ({ type, id }: { type: 'key' | 'session'; id: string }): Promise<CredentialLookup> =>
    type === 'key' ? findKeyActor(id) : findSessionActor(id)
  const openRequests = createOpenRequests({ clock })
  const unsubscribe = subscribeToAccessChanges(db, openRequests.onAccessChange, {
    onGap: openRequests.onMissedChanges,
  })
  return {
    services: {
      keyUses,
      finders,
      findActor,
      assertOperator: createAssertOperator({
        db,
        peers,
        readOwnerKey: () => readOwnerKey(config.dataDir),
      }),
      openRequests,
    },
    close: {
      name: 'write the last use of API keys',
      async run() {
        unsubscribe()
        await keyUses.close()
      },
    },
  } satisfies Module
}
