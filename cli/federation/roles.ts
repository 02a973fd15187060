// The AWS roles of the workspace: their list, and how a typed role is found.
import type { AwsRole, AwsRoleList } from '../../shared/api/federation.ts'
import { findByPrefix } from '../arguments/unique-prefix.ts'
import type { Client } from '../connection/client.ts'
import type { List } from '../lists/list.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { formatAge } from '../output/format.ts'
import { printMessage, sanitize } from '../output/print.ts'

export const loadRoles = (client: Client): Promise<AwsRoleList> =>
  client.request<AwsRoleList>('GET', '/aws-roles')

export const STATES = ['verified', 'failed', 'unknown'] as const

export function getState({ verifiedAt, verifyError }: AwsRole): (typeof STATES)[number] {
  if (verifyError !== null) return 'failed'
  return verifiedAt === null ? 'unknown' : 'verified'
}

const formatState = (role: AwsRole, now: number): string =>
  role.verifiedAt === null ? getState(role) : `${formatAge(role.verifiedAt, now)} ago`

export const ROLES: List<AwsRole> = {
  columns: [
    { header: 'PROFILE', cell: ({ profile }) => profile },
    { header: 'ROLE', cell: ({ roleArn }) => roleArn },
    { header: 'VERIFIED', cell: formatState, isRelativeTime: true },
    { header: 'ID', cell: ({ id }) => id, isWide: true },
    { header: 'IDENTITY', cell: ({ verifiedArn }) => verifiedArn ?? '-', isWide: true },
    { header: 'CREATED BY', cell: ({ createdBy }) => createdBy, isWide: true },
    { header: 'ERROR', cell: ({ verifyError }) => verifyError ?? '-', isWide: true },
  ],
  getId: ({ id }) => id,
  getName: ({ profile }) => profile,
  filters: {
    profile: { get: ({ profile }) => profile },
    role: { get: ({ roleArn }) => roleArn },
    state: { get: getState, values: STATES },
  },
  getEmptyMessage: (isFiltered) =>
    isFiltered ? 'No matching AWS roles.' : 'No AWS roles. `box aws connect ROLE_ARN` connects one.',
}

/** Prints what the operator has to do before boxes can use roles. */
export function printMissing({ missing }: AwsRoleList): void {
  for (const sentence of missing) printMessage(`boxes of this deployment cannot use AWS roles. ${sentence}`)
}

/** @param typed a profile, an ARN, or an id @throws CliError */
export function findRole(roles: readonly AwsRole[], typed: string): AwsRole {
  const exact = roles.find(({ profile, roleArn }) => profile === typed || roleArn === typed)
  if (exact !== undefined) return exact
  const found = typed.startsWith('awr_')
    ? findByPrefix(roles, typed, {
        getId: ({ id }) => id,
        describe: ({ profile }) => profile,
        kind: 'AWS roles',
      })
    : undefined
  if (found !== undefined) return found
  throw new CliError(
    EXIT.notFound,
    `No such AWS role: '${sanitize(typed)}'. \`box aws roles\` lists the roles.`,
    { code: 'no_such_role' },
  )
}
