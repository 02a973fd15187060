// The STS of the tests refuses what AWS refuses: other tests rely on it.
import { AssumeRoleWithWebIdentityCommand, GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts'
import t from 'tap'
import { startFakeSts } from '../fake-sts.ts'
import { createTestIssuer, TEST_ISSUER } from './test-issuer.ts'
import { createTrustPolicy } from './trust-policy.ts'

const ROLE = 'arn:aws:iam::123456789012:role/ci/deploy'

t.test('assumes roles with tokens of their workspace only', async (t) => {
  let offset = 0
  const now = () => Date.now() + offset
  const issuer = await createTestIssuer(now)
  const sts = await startFakeSts(t, { issuer: TEST_ISSUER, readDocument: issuer.readDocument, now })
  const trust = { issuer: TEST_ISSUER, account: '123456789012', audience: 'sts.amazonaws.com' }
  sts.roles.set(ROLE, createTrustPolicy({ ...trust, subject: 'workspace:ours:*' }))
  const endpoint = { endpoint: sts.url, region: 'eu-central-1', maxAttempts: 1 }
  const noCredentials = { accessKeyId: '', secretAccessKey: '' }
  const client = new STSClient({ ...endpoint, credentials: noCredentials })
  t.teardown(() => client.destroy())
  const assume = async (token: string, changes: { RoleArn?: string; DurationSeconds?: number } = {}) =>
    client.send(
      new AssumeRoleWithWebIdentityCommand({
        RoleArn: ROLE,
        RoleSessionName: 'boxwood-fig',
        WebIdentityToken: token,
        ...changes,
      }),
    )

  const token = await issuer.sign()
  const response = await assume(token)
  const { AccessKeyId, SecretAccessKey, SessionToken } = response.Credentials ?? {}
  const identify = (sessionToken: string) => {
    const credentials = {
      accessKeyId: String(AccessKeyId),
      secretAccessKey: String(SecretAccessKey),
      sessionToken,
    }
    const caller = new STSClient({ ...endpoint, credentials })
    return caller.send(new GetCallerIdentityCommand({})).finally(() => caller.destroy())
  }
  const arn = 'arn:aws:sts::123456789012:assumed-role/deploy/boxwood-fig'
  t.match(response, { SubjectFromWebIdentityToken: 'workspace:ours:box:fig', AssumedRoleUser: { Arn: arn } })
  t.match(await identify(String(SessionToken)), { Arn: arn, Account: '123456789012' })
  await t.rejects(identify('x'), { name: 'InvalidClientTokenId' })

  const [header, , signature] = token.split('.')
  const claims = Buffer.from(JSON.stringify({ iss: TEST_ISSUER, sub: 'workspace:ours:x', exp: 1e10 }))
  const refused: Record<string, [token: string, name: string]> = {
    'another workspace': [await issuer.sign({ sub: 'workspace:foreign:box:fig' }), 'AccessDenied'],
    'a similar workspace': [await issuer.sign({ sub: 'workspace:ours2:box:fig' }), 'AccessDenied'],
    'another audience': [await issuer.sign({ aud: 'other' }), 'InvalidIdentityTokenException'],
    'an authorized party': [await issuer.sign({ azp: 'other' }), 'InvalidIdentityTokenException'],
    'another issuer': [await issuer.sign({ iss: 'https://evil.example' }), 'InvalidIdentityTokenException'],
    'other claims': [
      `${header}.${claims.toString('base64url')}.${signature}`,
      'InvalidIdentityTokenException',
    ],
    'another key': [await (await createTestIssuer(now)).sign(), 'InvalidIdentityTokenException'],
    'no token': ['a.b.c', 'InvalidIdentityTokenException'],
    'the future': [await issuer.sign({ nbf: Date.now() / 1000 + 60 }), 'InvalidIdentityTokenException'],
    'the past': [await issuer.sign({ exp: Date.now() / 1000 - 1 }), 'ExpiredTokenException'],
  }
  for (const [title, [value, name]] of Object.entries(refused))
    await t.rejects(assume(value), { name }, title)
  await t.rejects(assume(token, { RoleArn: `${ROLE}2` }), { name: 'AccessDenied' })
  await t.rejects(assume(token, { DurationSeconds: 899 }), { name: 'ValidationError' })

  offset = 3_600_000
  await t.rejects(assume(token), { name: 'ExpiredTokenException' })
  await t.rejects(identify(String(SessionToken)), { name: 'ExpiredToken' })
  t.match(sts.calls[0], { action: 'AssumeRoleWithWebIdentity', roleArn: ROLE, error: null })
})
