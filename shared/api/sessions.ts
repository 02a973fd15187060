// Schemas of sign-in and of dashboard sessions (spec §5).
import * as z from 'zod'
import { BILLING_PROVIDERS, ROLES } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { displayNameSchema, emailSchema, timestampSchema } from './common.ts'

export const sessionSchema = z
  .object({
    id: z.string().meta({ description: 'the id of the session, such as ses_…; not a secret' }),
    createdAt: timestampSchema.meta({ description: 'when the user signed in' }),
    lastUsedAt: timestampSchema.meta({ description: 'the last request of the session, up to an hour late' }),
    expiresAt: timestampSchema.meta({
      description: '14 days after the last use, and at most 90 days after the sign-in',
    }),
    userAgent: z
      .string()
      .nullable()
      .meta({ description: 'the header User-Agent of the sign-in, shortened to 200 characters' }),
    address: z.string().nullable().meta({ description: 'the IP address of the sign-in' }),
    isCurrent: z.boolean().meta({ description: 'whether the request was sent with this session' }),
  })
  .meta({ id: 'Session', description: 'A sign-in of a user to a workspace, with a cookie' })
export type Session = z.infer<typeof sessionSchema>

const roleSchema = z.enum(ROLES)

const signedInFields = {
  session: sessionSchema,
  user: z
    .object({
      id: z.string(),
      email: z
        .string()
        .nullable()
        .meta({ description: 'lowercase; null: the first owner of the coordinator has not set one' }),
      name: z.string(),
      role: roleSchema,
    })
    .meta({ id: 'SessionUser' }),
  workspace: z.object({ id: z.string(), name: z.string() }),
}

export const signedInSchema = z.object(signedInFields).meta({
  id: 'SignedIn',
  description: 'The session whose cookie the response sets',
})
export type SignedIn = z.infer<typeof signedInSchema>

export const currentSessionSchema = z
  .object({
    ...signedInFields,
    workspaces: z
      .array(z.object({ id: z.string(), name: z.string(), role: roleSchema }))
      .meta({ description: 'the workspaces of which the person is a member, sorted by name' }),
    billing: z.enum(BILLING_PROVIDERS).meta({ description: 'as `provider` of GET /billing' }),
  })
  .meta({ id: 'CurrentSession' })
export type CurrentSession = z.infer<typeof currentSessionSchema>

export const sessionListSchema = z.object({
  sessions: z.array(sessionSchema).meta({ description: 'last used first' }),
})

export const issuedCodeSchema = z
  .object({
    id: z.string().meta({ description: 'the id of the code, such as sic_…' }),
    expiresAt: timestampSchema,
  })
  .meta({ id: 'IssuedCode', description: 'A code that was sent by email' })
export type IssuedCode = z.infer<typeof issuedCodeSchema>

const CODE_RULE = 'must be the 8 letters of the code, such as BCDF-GHJK'

export const confirmCodeRequestSchema = z
  .strictObject({
    id: z.string('must be the id of the response that sent the code').max(100),
    code: z
      .string(CODE_RULE)
      .max(32, CODE_RULE)
      .meta({ description: '8 letters, such as BCDF-GHJK. Case, spaces and hyphens do not matter.' }),
  })
  .meta({ id: 'ConfirmCode' })
export type ConfirmCodeRequest = z.infer<typeof confirmCodeRequestSchema>

export const signInRequestSchema = z.strictObject({ email: emailSchema }).meta({ id: 'SignIn' })

const OWNER_SECRET_RULE = 'must be the content of sign-in.key, or the secret of a link'

export const ownerSignInRequestSchema = z
  .strictObject({
    secret: z.string(OWNER_SECRET_RULE).max(200, OWNER_SECRET_RULE).meta({
      description:
        'the content of sign-in.key in the data directory of the coordinator, or the secret of a link of POST /sign-in/owner/link',
    }),
  })
  .meta({ id: 'OwnerSignIn' })

export const createLinkRequestSchema = z
  .strictObject({
    secret: z
      .string('must be the content of sign-in.key')
      .max(200, 'must be the content of sign-in.key')
      .meta({ description: 'the content of sign-in.key in the data directory of the coordinator' }),
  })
  .meta({ id: 'CreateSignInLink' })

export const signInLinkSchema = z
  .object({
    secret: z.string().meta({
      description: 'signs in once. The page /sign-in accepts it as the fragment: /sign-in#SECRET',
    }),
    expiresAt: timestampSchema.meta({ description: 'after 15 minutes' }),
  })
  .meta({ id: 'SignInLink' })
export type SignInLinkResponse = z.infer<typeof signInLinkSchema>

export const switchWorkspaceRequestSchema = z
  .strictObject({ workspaceId: z.string('must be the id of a workspace').max(100) })
  .meta({ id: 'SwitchWorkspace' })

export const updateUserRequestSchema = z
  .strictObject({ name: displayNameSchema(LIMITS.memberNameChars) })
  .meta({ id: 'UpdateUser' })

export const changeEmailRequestSchema = z.strictObject({ email: emailSchema }).meta({ id: 'ChangeEmail' })

export const userResponseSchema = z.object({ user: signedInFields.user })
export type SignedInUser = z.infer<typeof userResponseSchema>['user']
