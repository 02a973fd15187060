// GET /me (spec §4.2).
import { account } from '../../shared/api/account.ts'
import { type Route, route } from '../http/route.ts'
import type { AccountService } from './service.ts'

export const accountRoutes = ({ account: service }: { account: AccountService }): Route[] => [
  route({
    method: 'GET',
    path: '/me',
    summary: 'Who is calling, in which workspace, and where the edge is',
    access: null,
    answers: { 200: account },
    handle: ({ actor }) => service.load(actor),
  }),
]
