// Names of AWS roles, their profiles and sessions, and which boxes get credentials. Pure functions.
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import type { AwsRoleRow } from '../../db/schema.ts'

/** The audience of the tokens that STS accepts. */
export const AUDIENCE = 'sts.amazonaws.com'

const DEFAULT_PROFILE = 'default'

/** The name of the role of an ARN, as a profile: AWS allows more characters in the names of roles. */
export function toProfile(roleArn: string): string {
  const name = roleArn.slice(roleArn.lastIndexOf('/') + 1)
  return name.replace(/[^\w.@+-]/g, '-').replace(/^[^A-Za-z0-9]+/, '') || 'role'
}

/**
 * Decides what a request to connect a role does.
 * @param roles of the workspace
 * @returns `existing`: the role is connected already; else the profile of the new role
 * @throws ApiError already_connected, profile_taken, aws_roles_limit
 */
export function decideConnection(
  roles: readonly AwsRoleRow[],
  { roleArn, profile }: { roleArn: string; profile?: string | undefined },
): { existing: AwsRoleRow } | { profile: string } {
  const existing = roles.find(({ role_arn }) => role_arn === roleArn)
  if (existing !== undefined) {
    if (profile === undefined || profile === existing.profile) return { existing }
    throw new ApiError(
      'already_connected',
      `The role is connected under the profile ${existing.profile}. Disconnect it first to use another profile.`,
    )
  }
  assertRoomForRole(roles)
  const isFree = (name: string) => !roles.some((role) => role.profile === name)
  const chosen = profile ?? (isFree(DEFAULT_PROFILE) ? DEFAULT_PROFILE : toProfile(roleArn))
  assertProfileIsFree(roles, chosen)
  return { profile: chosen }
}

export function assertRoomForRole(roles: readonly AwsRoleRow[]): void {
  if (roles.length >= LIMITS.awsRoles)
    throw new ApiError(
      'aws_roles_limit',
      `The workspace has ${roles.length} AWS roles, the most that are possible. Disconnect one first.`,
    )
}

export function assertProfileIsFree(roles: readonly AwsRoleRow[], profile: string): void {
  const other = roles.find((role) => role.profile === profile)
  if (other !== undefined)
    throw new ApiError(
      'profile_taken',
      `The role ${other.role_arn} has the profile ${profile}. Choose another profile.`,
    )
}

/** The session of a box in the logs of AWS. A name of a box has letters, digits and hyphens only. */
export const toSessionName = (boxName: string): string => `boxwood-${boxName}`.slice(0, 64)

export type BoxFacts = {
  isRestricted: boolean
  isDeleted: boolean
  isWorkspaceClosing: boolean
  /** Whether the environment of the box lets cloud credentials through; null: the box has no environment. */
  channel: boolean | null
  isOwnedByOwner: boolean
}

/** A box without an environment has no channel: only those of owners get credentials. */
export const getsCredentials = (box: BoxFacts): boolean =>
  !box.isRestricted &&
  !box.isDeleted &&
  !box.isWorkspaceClosing &&
  (box.channel === null ? box.isOwnedByOwner : box.channel)
