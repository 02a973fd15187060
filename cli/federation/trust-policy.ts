// The trust policy of a role that boxes assume. It pins the audience and the subjects of the workspace: a policy without the
// subject would admit the boxes of every workspace of the deployment.
import type { AwsRoleList } from '../../shared/api/federation.ts'

/** In the policy of an unknown account, where the user fills it in. */
const UNKNOWN_ACCOUNT = 'ACCOUNT_ID'

export type PolicyFacts = Pick<AwsRoleList, 'audience' | 'subjectPattern'> & { issuer: string }

/** @param roleArn undefined: the account is not known */
export function formatTrustPolicy(facts: PolicyFacts, roleArn?: string): string {
  const { issuer, audience, subjectPattern } = facts
  const [, partition = 'aws', , , account = UNKNOWN_ACCOUNT] = roleArn?.split(':') ?? []
  const provider = issuer.replace(/^https:\/\//, '')
  const policy = {
    Version: '2012-10-17',
    Statement: [
      {
        Effect: 'Allow',
        Principal: { Federated: `arn:${partition}:iam::${account}:oidc-provider/${provider}` },
        Action: 'sts:AssumeRoleWithWebIdentity',
        Condition: {
          StringEquals: { [`${provider}:aud`]: audience },
          StringLike: { [`${provider}:sub`]: subjectPattern },
        },
      },
    ],
  }
  return JSON.stringify(policy, null, 2)
}
