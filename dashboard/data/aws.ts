// AWS roles as text: the trust policy that a role needs, the commands, and the role that a link has connected.
import type { AwsConnect, AwsRole, AwsRoleList } from '../../shared/api/federation.ts'
import { formatCommandLine } from './command-line.ts'

/** In the policy of an unknown account, where the user fills it in. */
const UNKNOWN_ACCOUNT = 'ACCOUNT_ID'

/** Why there is no link, as the API says it. */
export const NO_LINK =
  'This deployment has no link that creates a role. Create the role in AWS, and connect it by its ARN.'

export type PolicyFacts = Pick<AwsRoleList, 'audience' | 'subjectPattern'> & { issuer: string }

/**
 * The same text as `box aws connect --trust-policy`. It pins the audience and the subjects of the workspace.
 * @param roleArn undefined: the account is not known
 */
export function formatTrustPolicy({ issuer, audience, subjectPattern }: PolicyFacts, roleArn = ''): string {
  const [, partition = 'aws', , , account = UNKNOWN_ACCOUNT] = roleArn.split(':')
  const provider = issuer.replace(/^https:\/\//, '')
  const statement = {
    Effect: 'Allow',
    Principal: { Federated: `arn:${partition}:iam::${account}:oidc-provider/${provider}` },
    Action: 'sts:AssumeRoleWithWebIdentity',
    Condition: {
      StringEquals: { [`${provider}:aud`]: audience },
      StringLike: { [`${provider}:sub`]: subjectPattern },
    },
  }
  return JSON.stringify({ Version: '2012-10-17', Statement: [statement] }, null, 2)
}

/** @param roleArn null: the command prints a link */
export const formatConnectCommand = (roleArn: string | null, profile: string | undefined): string =>
  formatCommandLine('box', 'aws', 'connect', roleArn, ...(profile ? ['--as', profile] : []))

/** A link with the roles that were connected before it, or in another way since. */
export type OpenLink = AwsConnect & { knownIds: ReadonlySet<string> }

/** The role that the link has connected, as the user who created the link. */
export const findConnected = (
  { knownIds }: Pick<OpenLink, 'knownIds'>,
  roles: readonly AwsRole[],
  userId: string,
): AwsRole | undefined =>
  roles.find(({ id, createdBy }) => createdBy === `user:${userId}` && !knownIds.has(id))

/** @param createdBy user:ID or key:ID @param names of the members, by id */
export function describeCreator(createdBy: string, names: ReadonlyMap<string, string>): string {
  const [, kind, id] = /^(user|key):(.*)$/s.exec(createdBy) ?? []
  if (kind === undefined || id === undefined) return createdBy
  return kind === 'user' ? (names.get(id) ?? id) : `the key ${id}`
}
