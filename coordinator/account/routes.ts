// The route GET /me (spec §4.2).
import { accountSchema } from '../../shared/api/account.ts'
import { type Route, route } from '../http/route.ts'
import type { AccountService } from './service.ts'

export const accountRoutes = ({ account: service }: { account: AccountService }): Route[] => [
  route({
    method: 'GET',
    path: '/me',
    summary: 'Get the account',
    description: 'Returns the user, workspace and API key of the caller, and the base URL of the edge.',
    access: null,
    responses: { 200: accountSchema },
    handler: ({ actor }) => service.load(actor),
  }),
]
