// API keys, and the account of a key (spec §4.2, §5).

import type { AccountQuery } from '../../../shared/api/account.ts'
import type { Box } from '../../../shared/api/boxes.ts'
import { newApiKey } from '../../../shared/api-key.ts'
import type { Actor } from '../../http/actor.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import { keyRoutes } from '../keys/key-routes.ts'
import { createKeyService } from '../keys/key-service.ts'
import { accountRoutes } from './routes.ts'
import { type AccountBilling, createAccountService } from './service.ts'

export type AccountModuleContext = ModuleBase & {
  boxes: {
    list(actor: Actor, options: { live: boolean }): Promise<Box[]>
    listPages(actor: Actor, query: AccountQuery): AsyncIterable<Box[]>
  }
  billing: AccountBilling
  /** `public`: the base URL of the edge, without `/v1/box`. */
  urls: { public: string }
}

export function accountModule(context: AccountModuleContext): Module {
  const { db, clock, boxes, urls, billing } = context
  const keys = createKeyService({ db, clock, newApiKey, boxes })
  return {
    routes: [
      ...withTag(
        'Account',
        accountRoutes({ account: createAccountService({ db, boxes, edgeUrl: urls.public, billing }) }),
      ),
      ...withTag('API keys', keyRoutes({ keys })),
    ],
    workspaceTables: [{ table: 'api_keys', key: 'id', isCredential: true }],
  }
}
