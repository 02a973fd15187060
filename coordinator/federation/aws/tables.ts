// The tables of AWS roles. Times are milliseconds since the epoch.

export type AwsRoleRow = {
  id: string
  workspace_id: string
  role_arn: string
  /** Unique in the workspace. */
  profile: string
  /** The last verification has succeeded; null: it has failed, or there was none. */
  verified_at: number | null
  verified_arn: string | null
  verify_error: string | null
  created_by: string
  created_at: number
}

/** A link that connects a role. A workspace has at most one. */
export type AwsConnectRow = {
  id: string
  workspace_id: string
  token_hash: string
  profile: string | null
  /** The creator, who must still be an owner when the link is used. */
  user_id: string
  credential_type: 'key' | 'session'
  credential_id: string
  created_at: number
  expires_at: number
}

declare module '../../db/schema.ts' {
  interface Tables {
    aws_roles: AwsRoleRow
    aws_connects: AwsConnectRow
  }
}
