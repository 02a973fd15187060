// What the coordinator sends to the agent of a box for its cloud roles: the token of the box and the profiles that use it.
// Responses are untrusted.
import * as z from 'zod'
import {
  AWS_PROFILE_PATTERN,
  AWS_ROLE_ARN_PATTERN,
  AWS_SESSION_NAME_PATTERN,
  MAX_CLOUD_PROFILES,
  MAX_CLOUD_TOKEN_LENGTH,
} from '../field-values.ts'

export const cloudProfileSchema = z.object({
  /** Programs use the profile `default` when none is selected. */
  name: z.string().regex(AWS_PROFILE_PATTERN),
  roleArn: z.string().regex(AWS_ROLE_ARN_PATTERN),
  roleSessionName: z.string().regex(AWS_SESSION_NAME_PATTERN),
})
export type CloudProfile = z.infer<typeof cloudProfileSchema>

/** PUT /cloud-credentials of the agent. The complete state: what the request does not name is removed from the box. */
export const cloudCredentialsSchema = z.object({
  /** content: a JWT of three base64url parts. null: the file of the token is removed. */
  token: z
    .object({
      content: z
        .string()
        .regex(/^[\w-]+\.[\w-]+\.[\w-]+$/)
        .max(MAX_CLOUD_TOKEN_LENGTH),
    })
    .nullable(),
  profiles: z.array(cloudProfileSchema).max(MAX_CLOUD_PROFILES),
})
export type CloudCredentials = z.infer<typeof cloudCredentialsSchema>

export const cloudCredentialsResponseSchema = z.object({
  /** The names of the profiles that programs of the box can use. */
  written: z.array(z.string().max(256)).max(MAX_CLOUD_PROFILES),
  /**
   * The profiles that were not written, such as one that the user has defined in the same file, or `~/.aws/config` when its
   * profiles could not be removed.
   */
  failed: z
    .array(z.object({ name: z.string().max(256), message: z.string().max(4096) }))
    .max(MAX_CLOUD_PROFILES),
})
export type CloudCredentialsResponse = z.infer<typeof cloudCredentialsResponseSchema>
