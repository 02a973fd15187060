// Trust policies of IAM roles: the part that a policy for AssumeRoleWithWebIdentity uses. Anything else denies.

type Condition = Record<string, Record<string, string | string[]>>

export type TrustPolicy = {
  Version: string
  Statement: { Effect: string; Principal: { Federated: string }; Action: string; Condition: Condition }[]
}

export type TrustRequest = { issuer: string; account: string; audience: string; subject: string }

/** The policy that AWS recommends: it pins the audience and the subject. @param subject a pattern */
export function createTrustPolicy({ issuer, account, audience, subject }: TrustRequest): TrustPolicy {
  const provider = issuer.replace(/^https:\/\//, '')
  return {
    Version: '2012-10-17',
    Statement: [
      {
        Effect: 'Allow',
        Principal: { Federated: `arn:aws:iam::${account}:oidc-provider/${provider}` },
        Action: 'sts:AssumeRoleWithWebIdentity',
        Condition: {
          StringEquals: { [`${provider}:aud`]: audience },
          StringLike: { [`${provider}:sub`]: subject },
        },
      },
    ],
  }
}

export function allows(policy: TrustPolicy, { issuer, account, audience, subject }: TrustRequest): boolean {
  const provider = issuer.replace(/^https:\/\//, '')
  const values = new Map([
    [`${provider}:aud`, audience],
    [`${provider}:sub`, subject],
  ])
  return policy.Statement.some(
    ({ Effect, Principal, Action, Condition }) =>
      Effect === 'Allow' &&
      Action === 'sts:AssumeRoleWithWebIdentity' &&
      Principal.Federated === `arn:aws:iam::${account}:oidc-provider/${provider}` &&
      Object.entries(Condition).every(([operator, keys]) =>
        Object.entries(keys).every(([key, expected]) =>
          [expected].flat().some((pattern) => matches(operator, pattern, values.get(key))),
        ),
      ),
  )
}

function matches(operator: string, pattern: string, value: string | undefined): boolean {
  if (value === undefined) return false
  if (operator === 'StringEquals') return value === pattern
  if (operator !== 'StringLike') return false
  const source = pattern
    .replace(/[\\^$.+()[\]{}|]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.')
  return new RegExp(`^${source}$`, 's').test(value)
}
