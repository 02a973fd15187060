// The route GET /me (spec §4.2).
import { accountQuerySchema, accountSchema } from '../../../shared/api/account.ts'
import { byKey } from '../../http/access.ts'
import { sendJson } from '../../http/json-pages.ts'
import { type Route, route } from '../../http/route.ts'
import type { AccountService } from './service.ts'

export const accountRoutes = ({ account: service }: { account: AccountService }): Route[] => [
  route({
    id: 'account.get',
    method: 'GET',
    path: '/me',
    summary: 'Get the account',
    description:
      'Returns the user, workspace, boxes and API key of the caller, and the base URL of the edge. Any live credential of the control plane may send it, also a key that is not verified. `boxes` has all boxes, and a terminated one as long as GET /boxes (a client that needs one of them sends `box`). A limited key gets null, empty or absent fields for what it may not read.',
    access: byKey(null, 'read', { acceptsUnverified: true }),
    request: { query: accountQuerySchema },
    responses: { 200: accountSchema },
    handler: async ({ actor, query, reply }) => sendJson(reply, await service.load(actor, query)),
  }),
]
