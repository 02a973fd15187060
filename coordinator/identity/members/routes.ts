// Routes of the members of a workspace (spec §5.7).
import { z } from 'zod'
import {
  inviteRequestSchema,
  inviteResponseSchema,
  memberListSchema,
  memberResponseSchema,
  updateMemberRequestSchema,
} from '../../../shared/api/members.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { bySession } from '../../http/access.ts'
import { type Route, route } from '../../http/route.ts'
import type { MemberService } from './service.ts'

const memberId = z.object({ id: z.string().meta({ description: 'the id of a member, such as usr_…' }) })

export function memberRoutes({ members }: { members: MemberService }): Route[] {
  return [
    route({
      id: 'members.list',
      method: 'GET',
      path: '/members',
      access: bySession('not_contractor'),
      summary: 'List members, oldest first',
      description: 'Invited members are included, removed ones are not.',
      responses: { 200: memberListSchema },
      handler: async ({ actor }) => ({ members: await members.list(actor) }),
    }),
    route({
      id: 'members.invite',
      method: 'POST',
      path: '/members',
      access: bySession('owner'),
      summary: 'Invite a member',
      description: `The person joins with the first sign-in with this email address; a link is not needed. A member that was removed can be invited again, as a new member. At most ${LIMITS.invitations} invitations in 24 hours: rate_limited with Retry-After.`,
      request: { body: inviteRequestSchema },
      responses: { 201: inviteResponseSchema },
      errors: ['member_exists', 'workspace_closing', 'rate_limited'],
      handler: ({ actor, body }) => members.invite(actor, body),
    }),
    route({
      id: 'members.update',
      method: 'PATCH',
      path: '/members/:id',
      access: bySession('owner'),
      summary: 'Change the role or name of a member',
      description:
        'A new role applies from the next request of the member; open streams that it does not allow end within seconds. The boxes of a member who becomes a contractor become restricted, and stay so. The last active owner stays an owner: last_owner.',
      request: { params: memberId, body: updateMemberRequestSchema },
      responses: { 200: memberResponseSchema },
      errors: ['last_owner'],
      handler: async ({ actor, params, body }) => ({ member: await members.update(actor, params.id, body) }),
    }),
    route({
      id: 'members.remove',
      method: 'DELETE',
      path: '/members/:id',
      access: bySession(),
      summary: 'Remove a member, or leave the workspace',
      description:
        'Owners remove any member, also an invited one; with their own id, members of every role leave the workspace. In the same step the API keys of the member are revoked, and the sessions and tickets end; open streams end within seconds. The boxes of the member stay: owners and members of the workspace use them. Removing a member again has no effect. The last active owner cannot be removed: last_owner.',
      request: { params: memberId },
      responses: { 204: null },
      errors: ['not_owner', 'last_owner'],
      handler: ({ actor, params }) => members.remove(actor, params.id),
    }),
  ]
}
