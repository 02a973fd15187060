// Which boxes get credentials, the names of profiles, the endpoint of STS and its responses.
import t from 'tap'
import { parseStsResponse } from '../../../../coordinator/federation/aws/parse-sts-response.ts'
import {
  type BoxFacts,
  getsCredentials,
  toProfile,
  toSessionName,
} from '../../../../coordinator/federation/aws/rules.ts'
import { getStsEndpoint } from '../../../../coordinator/federation/aws/sts.ts'
import { getIssuerPath } from '../../../../coordinator/federation/issuer/documents.ts'
import { AWS_PROFILE_PATTERN, AWS_SESSION_NAME_PATTERN } from '../../../../shared/field-values.ts'

t.test('which boxes get credentials', async (t) => {
  const facts: BoxFacts = {
    isRestricted: false,
    isDeleted: false,
    isWorkspaceClosing: false,
    channel: null,
    isOwnedByOwner: true,
  }
  t.equal(getsCredentials(facts), true)
  for (const change of [
    { isRestricted: true },
    { isDeleted: true },
    { isWorkspaceClosing: true },
    { isOwnedByOwner: false },
    { channel: false },
    { channel: true, isRestricted: true },
  ])
    t.equal(getsCredentials({ ...facts, ...change }), false, JSON.stringify(change))
  t.equal(getsCredentials({ ...facts, channel: true, isOwnedByOwner: false }), true)
})

t.test('the name of a role is a valid profile', async (t) => {
  for (const [name, profile] of Object.entries({
    deploy: 'deploy',
    'team/deploy': 'deploy',
    'a=b,c@d': 'a-b-c@d',
    '_=+': 'role',
    '+x': 'x',
  })) {
    t.equal(toProfile(`arn:aws:iam::123456789012:role/${name}`), profile)
    t.match(profile, AWS_PROFILE_PATTERN)
  }
  t.match(toSessionName('x'.repeat(100)), AWS_SESSION_NAME_PATTERN)
})

t.test('the endpoint of STS', async (t) => {
  const none = { awsStsEndpoint: null, awsRegion: null }
  t.equal(getStsEndpoint(none), 'https://sts.amazonaws.com')
  t.equal(getStsEndpoint({ ...none, awsRegion: 'eu-central-1' }), 'https://sts.eu-central-1.amazonaws.com')
  t.equal(getStsEndpoint({ ...none, awsRegion: 'cn-north-1' }), 'https://sts.cn-north-1.amazonaws.com.cn')
  const own = { awsStsEndpoint: 'http://127.0.0.1:1', awsRegion: 'eu-central-1' }
  t.equal(getStsEndpoint(own), 'http://127.0.0.1:1')
})

t.test('responses of STS', async (t) => {
  const arn = 'arn:aws:sts::123456789012:assumed-role/deploy/boxwood-verify'
  const credentials = '<Credentials><SecretAccessKey>secret</SecretAccessKey></Credentials>'
  const user = `<AssumedRoleUser>\n  <AssumedRoleId>A:b</AssumedRoleId>\n  <Arn>${arn}</Arn>\n</AssumedRoleUser>`
  t.same(parseStsResponse(`<R>${credentials}${user}</R>`), { arn })
  t.same(parseStsResponse('<Error><Code>Denied</Code></Error>'), { error: 'Denied' })
  t.same(parseStsResponse('<Error><Code>A</Code><Message>&lt;b&gt; &#x41;</Message></Error>'), {
    error: 'A: <b> &#x41;',
  })
  for (const text of ['', '<Error>', '<Error></Error>', '</Error><Error>', '<AssumedRoleUser><Arn>x</Arn>'])
    t.equal(parseStsResponse(text), null, text)
})

t.test('the documents are at this coordinator when the issuer is its URL, or below it', async (t) => {
  const base = 'https://boxes.example.com'
  t.equal(getIssuerPath(base, base), '')
  t.equal(getIssuerPath(`${base}/oidc`, base), '/oidc')
  t.equal(getIssuerPath(`${base}/boxwood/oidc`, `${base}/boxwood`), '/oidc')
  t.equal(getIssuerPath(`${base}/boxwoods`, `${base}/boxwood`), null)
  t.equal(getIssuerPath('https://boxes.example.com.evil.org', base), null)
})
