// Schemas of members (spec §2.3, §5.11): fields, and the requests to invite and change them.
import * as z from 'zod'
import { ROLES } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { displayNameSchema, emailSchema, timestampSchema } from './common.ts'

const roleSchema = z.enum(ROLES, `must be one of ${ROLES.join(', ')}`).meta({
  id: 'Role',
  description:
    'owner: may send every request. member: uses every box, snapshot and setting of the workspace, but changes no members and no settings. contractor: uses only their own boxes, which are always restricted, and reads neither members nor policies nor the audit log.',
})

export const memberSchema = z
  .object({
    id: z.string().meta({ description: 'the id of the user, such as usr_…' }),
    email: z.string().nullable().meta({
      description: 'lowercase; null: not set, by the first owner of the coordinator',
    }),
    name: z.string(),
    role: roleSchema,
    status: z.enum(['active', 'invited']).meta({
      description: 'invited: the person has not signed in to the workspace yet',
    }),
    createdAt: timestampSchema.meta({ description: 'when the member was invited' }),
    joinedAt: timestampSchema.nullable().meta({ description: 'the first sign-in; null: invited' }),
    lastActiveAt: timestampSchema.nullable().meta({
      description:
        'the last request with a session or API key of the member, up to an hour late; null: none is known',
    }),
  })
  .meta({ id: 'Member', description: 'A person who may use the workspace' })
export type Member = z.infer<typeof memberSchema>

export const memberListSchema = z.object({
  members: z.array(memberSchema).meta({ description: 'oldest first' }),
})
export const memberResponseSchema = z.object({ member: memberSchema })
export const inviteResponseSchema = z.object({
  member: memberSchema,
  emailed: z.boolean().meta({
    description:
      'true: the invitation is being sent by email. false: the coordinator sends no mail, so notify the person yourself. They sign in with their email address.',
  }),
})
export type Invitation = z.infer<typeof inviteResponseSchema>

const nameSchema = displayNameSchema(LIMITS.memberNameChars)

export const inviteRequestSchema = z
  .strictObject({
    email: emailSchema,
    name: nameSchema.optional().meta({ description: 'default: the part of the email address before the @' }),
    role: roleSchema,
  })
  .meta({ id: 'InviteMember' })
export type InviteRequest = z.infer<typeof inviteRequestSchema>

export const updateMemberRequestSchema = z
  .strictObject({
    role: roleSchema.optional(),
    name: nameSchema.optional(),
  })
  .meta({ id: 'UpdateMember', description: 'The fields to change. At least one is required.' })
export type UpdateMemberRequest = z.infer<typeof updateMemberRequestSchema>
