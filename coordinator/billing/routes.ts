// The routes that read the billing of a workspace.
import {
  billingSchema,
  ENTRY_LIST_ERROR_CODES,
  entryListQuerySchema,
  entryListSchema,
} from '../../shared/api/billing.ts'
import { type Usage, type UsageQuery, usageQuerySchema, usageSchema } from '../../shared/api/usage.ts'
import { byKey, bySession } from '../http/access.ts'
import type { Actor } from '../http/actor.ts'
import { type Route, route } from '../http/route.ts'
import type { AccountReader } from './read-account.ts'

export type BillingRoutesOptions = {
  readUsage(actor: Actor, query: UsageQuery): Promise<Usage>
  account: AccountReader
}

export const billingRoutes = ({ readUsage, account }: BillingRoutesOptions): Route[] => [
  route({
    id: 'usage.get',
    method: 'GET',
    path: '/usage',
    summary: 'Get what the boxes have cost in a month',
    description:
      'Includes what is not charged yet: the amounts of the current month are those of GET /team/status at the same moment. A contractor gets what boxes have cost while the contractor owned them, also boxes that are deleted. While billing is off, there are no rows.',
    access: byKey('workspace', 'read'),
    request: { query: usageQuerySchema },
    responses: { 200: usageSchema },
    handler: ({ actor, query }) => readUsage(actor, query),
  }),
  route({
    id: 'billing.get',
    method: 'GET',
    path: '/billing',
    summary: 'Get the balance, the plan and the prices of the workspace',
    access: bySession('owner'),
    responses: { 200: billingSchema },
    handler: ({ actor }) => account.get(actor),
  }),
  route({
    id: 'billing.listEntries',
    method: 'GET',
    path: '/billing/entries',
    summary: 'List the entries of the ledger, newest first',
    description:
      'Usage has an entry for each hour, which is written when the hour is over. The sum of all entries is the balance without the usage of the current hour.',
    access: bySession('owner'),
    request: { query: entryListQuerySchema },
    fieldErrorCodes: ENTRY_LIST_ERROR_CODES,
    responses: { 200: entryListSchema },
    handler: ({ actor, query }) => account.list(actor, query),
  }),
]
