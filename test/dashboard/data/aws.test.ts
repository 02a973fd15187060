// AWS roles as text: the trust policy is that of the box command, and a link finds the role that it has connected.
import t from 'tap'
import { formatTrustPolicy as formatInCli } from '../../../cli/federation/trust-policy.ts'
import {
  describeCreator,
  findConnected,
  formatConnectCommand,
  formatTrustPolicy,
  NO_LINK,
} from '../../../dashboard/data/aws.ts'
import type { AwsRole } from '../../../shared/api/federation.ts'
import { ERRORS } from '../../../shared/errors.ts'

t.test('the trust policy is that of box aws connect --trust-policy', async (t) => {
  for (const issuer of ['https://boxes.example.com', 'https://boxes.example.com/oidc'])
    for (const roleArn of [
      undefined,
      'arn:aws:iam::123456789012:role/deploy',
      'arn:aws-cn:iam::210987654321:role/path/deploy',
    ]) {
      const facts = { issuer, audience: 'sts.amazonaws.com', subjectPattern: 'workspace:ws_1:*' }
      const policy = formatTrustPolicy(facts, roleArn)
      t.equal(policy, formatInCli(facts, roleArn))
      const [statement] = JSON.parse(policy).Statement
      t.match(Object.values(statement.Condition), [
        { [`${issuer.slice('https://'.length)}:aud`]: 'sts.amazonaws.com' },
        { [`${issuer.slice('https://'.length)}:sub`]: 'workspace:ws_1:*' },
      ])
    }
})

t.test('commands and reasons', async (t) => {
  t.equal(formatConnectCommand(null, ''), 'box aws connect')
  t.equal(formatConnectCommand('arn', undefined), 'box aws connect arn')
  t.equal(formatConnectCommand('arn', 'a b'), "box aws connect arn --as 'a b'")
  t.equal(NO_LINK, ERRORS.aws_quick_connect_unavailable[1])
  const names = new Map([['usr_1', 'ada@example.com']])
  t.equal(describeCreator('user:usr_1', names), 'ada@example.com')
  t.equal(describeCreator('user:usr_2', names), 'usr_2')
  t.equal(describeCreator('key:key_1', names), 'the key key_1')
  t.equal(describeCreator('system', names), 'system')
})

t.test('the role that a link has connected', async (t) => {
  const role = (id: string, createdBy: string) => ({ id, createdBy }) as AwsRole
  const roles = [role('old', 'user:a'), role('other', 'user:b'), role('new', 'user:a')]
  const link = (...ids: string[]) => ({ knownIds: new Set(ids) })
  t.equal(findConnected(link('old'), roles, 'a')?.id, 'new')
  t.equal(findConnected(link('old', 'new'), roles, 'a'), undefined, 'a role of another user')
})
