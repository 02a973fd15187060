// Schemas of cloud federation: the identity issuer, the AWS roles of a workspace and the links that connect one (spec §4.6).
import * as z from 'zod'
import { AWS_PROFILE_PATTERN, AWS_ROLE_ARN_PATTERN, AWS_TOKEN_PATH } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { timestampSchema } from './common.ts'

const roleArnSchema = z
  .string()
  .max(
    LIMITS.awsRoleArnChars,
    'must be the ARN of an IAM role, such as arn:aws:iam::123456789012:role/deploy',
  )
  .regex(
    AWS_ROLE_ARN_PATTERN,
    'must be the ARN of an IAM role, such as arn:aws:iam::123456789012:role/deploy',
  )
const profileSchema = z
  .string()
  .regex(
    AWS_PROFILE_PATTERN,
    'must be 1 to 64 letters, digits and any of _.@+-, and start with a letter or digit',
  )

export const awsRoleSchema = z
  .object({
    id: z.string().meta({ description: 'awr_…' }),
    roleArn: z.string(),
    profile: z.string().meta({ description: 'the profile of ~/.aws/config under which boxes use the role' }),
    verifiedAt: timestampSchema
      .nullable()
      .meta({ description: 'when the workspace could assume the role; null: the last verification failed' }),
    verifiedArn: z.string().nullable().meta({ description: 'the identity that AWS has returned' }),
    verifyError: z.string().nullable().meta({ description: 'why the last verification failed' }),
    createdAt: timestampSchema,
    createdBy: z.string().meta({ description: 'user:<id> or key:<id>' }),
  })
  .meta({ id: 'AwsRole' })
export type AwsRole = z.infer<typeof awsRoleSchema>
export const awsRoleResponseSchema = z.object({ role: awsRoleSchema })
export type AwsRoleResponse = z.infer<typeof awsRoleResponseSchema>

export const awsRoleListSchema = z.object({
  enabled: z.boolean().meta({ description: 'whether boxes of this deployment can use AWS roles' }),
  missing: z.array(z.string()).meta({ description: 'what the operator has to do when enabled is false' }),
  quickConnect: z.boolean().meta({ description: 'whether POST /aws-connect creates links' }),
  issuer: z.string().nullable(),
  audience: z.string(),
  workspaceId: z.string(),
  subjectPattern: z
    .string()
    .meta({ description: 'the subjects of the tokens of this workspace, for the trust policy of a role' }),
  tokenPath: z.string().meta({ description: `the file of the token on boxes: ${AWS_TOKEN_PATH}` }),
  limit: z.int().meta({ description: 'the most roles of a workspace' }),
  roles: z.array(awsRoleSchema).meta({ description: 'oldest first' }),
})
export type AwsRoleList = z.infer<typeof awsRoleListSchema>

export const connectRoleRequestSchema = z.strictObject({
  roleArn: roleArnSchema,
  profile: profileSchema.optional().meta({
    description: 'default: `default`, or the name of the role when another role has this profile',
  }),
})
export type ConnectRoleRequest = z.infer<typeof connectRoleRequestSchema>

export const CONNECT_ROLE_ERROR_CODES = { roleArn: 'invalid_role_arn', profile: 'invalid_profile' } as const

export const revokedSchema = z.object({ revoked: z.literal(true) })

export const createAwsConnectRequestSchema = z.strictObject({ profile: profileSchema.optional() })
export type CreateAwsConnectRequest = z.infer<typeof createAwsConnectRequestSchema>

export const awsConnectSchema = z.object({
  id: z.string().meta({ description: 'awc_…' }),
  url: z
    .string()
    .meta({ description: 'opens a stack in the console of AWS; contains the secret of the link' }),
  expiresAt: timestampSchema,
})
export type AwsConnect = z.infer<typeof awsConnectSchema>

export const cancelledSchema = z.object({ cancelled: z.literal(true) })

/** What the stack sends when it has created the role. */
export const awsConnectCallbackSchema = z.strictObject({
  id: z.string().max(64),
  token: z.string().max(128),
  roleArn: roleArnSchema,
})
export type AwsConnectCallback = z.infer<typeof awsConnectCallbackSchema>

export const awsConnectResultSchema = z.object({
  connected: z.boolean().meta({ description: 'false: AWS does not let the workspace assume the role yet' }),
  message: z.string().nullable(),
})
export type AwsConnectResult = z.infer<typeof awsConnectResultSchema>

export const federationDocumentsSchema = z.object({
  issuer: z.string(),
  openidConfiguration: z
    .record(z.string(), z.unknown())
    .meta({ description: 'served at /.well-known/openid-configuration below the issuer' }),
  jwks: z
    .object({ keys: z.array(z.record(z.string(), z.unknown())) })
    .meta({ description: 'served at /jwks below the issuer' }),
})
export type FederationDocuments = z.infer<typeof federationDocumentsSchema>

export const rotateFederationResponseSchema = z.object({
  rotated: z.boolean(),
  activeKeyId: z.string(),
  nextKeyId: z.string(),
  possibleAt: timestampSchema.meta({ description: 'the earliest time of the next rotation' }),
})
export type RotateFederationResponse = z.infer<typeof rotateFederationResponseSchema>
