// box aws and box federation, with a coordinator that has an identity issuer.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ACCOUNT, ISSUER, startFederation, toRoleArn } from '../e2e/federation/support.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { runBox } from './run-box.ts'

const federation = await startFederation(t)
const { url, key, workspaceId, addRole } = federation
const box = (args: string[], env: Record<string, string> = {}) =>
  runBox(url, args, { env: { BOXWOOD_API_KEY: key, ...env } })

const policyOf = (account: string) => ({
  Version: '2012-10-17',
  Statement: [
    {
      Effect: 'Allow',
      Principal: { Federated: `arn:aws:iam::${account}:oidc-provider/boxes.example.com/oidc` },
      Action: 'sts:AssumeRoleWithWebIdentity',
      Condition: {
        StringEquals: { 'boxes.example.com/oidc:aud': 'sts.amazonaws.com' },
        StringLike: { 'boxes.example.com/oidc:sub': `workspace:${workspaceId}:*` },
      },
    },
  ],
})

t.test('a role is connected, listed, verified and disconnected', async (t) => {
  t.match(await box(['aws']), { code: 0, stderr: /No AWS roles\. `box aws connect ROLE_ARN`/ })
  const deploy = toRoleArn('deploy')
  const refused = await box(['aws', 'connect', deploy])
  t.match(refused, {
    code: 1,
    stderr: /connected to arn.*yet: AccessDenied.*trust policy.*box aws verify default/s,
  })
  t.same(JSON.parse(refused.stdout), policyOf(ACCOUNT), 'the policy that AWS needs')
  t.match(await box(['aws', 'roles']), { stdout: /^PROFILE +ROLE +VERIFIED\ndefault +arn:\S+ +failed\n$/ })
  addRole('deploy')
  t.match(await box(['aws', 'verify', 'default']), {
    code: 0,
    stderr: new RegExp(`default: verified as arn:aws:sts::${ACCOUNT}:assumed-role/deploy/boxwood-verify`),
  })
  t.match(await box(['aws', 'ls']), { stdout: /default +arn:\S+ +\S+ ago/ })
  t.match(JSON.parse((await box(['aws', 'roles', '--json'])).stdout), {
    enabled: true,
    issuer: ISSUER,
    roles: [{ profile: 'default', verifyError: null }],
  })
  t.match(await box(['aws', 'connect', addRole('audit'), '--as', 'audit', '-q']), {
    code: 0,
    stderr: '',
  })
  t.match(await box(['aws', 'connect', deploy, '--as', 'x']), {
    code: 1,
    stderr: /\(already_connected\)/,
  })
  t.match(await box(['aws', 'connect', 'deploy']), { code: 2, stderr: /\(invalid_role_arn\)/ })
  t.match((await box(['__complete', '--', 'aws', 'verify', ''])).stdout, /^default\tarn.*\naudit\t/s)
  t.match(await box(['aws', 'verify', 'none']), { code: 5, stderr: /No such AWS role: 'none'/ })
  t.match(await box(['aws', 'disconnect', 'audit', toRoleArn('deploy')]), {
    code: 0,
    stderr: /audit: disconnected\ndefault: disconnected/,
  })
  t.match(await box(['aws', 'connect', deploy], { BOXWOOD_API_KEY: federation.memberKey }), {
    code: 1,
    stderr: /\(not_owner\)/,
  })
})

t.test('without a role, connect prints a link', async (t) => {
  const { code, stdout, stderr } = await box(['aws', 'connect'])
  t.equal(code, 0)
  t.match(stdout, /^https:\/\/eu-central-1\.console\.aws\.amazon\.com\/.*param_ConnectToken=[\w-]+\n$/)
  t.match(stderr, /works once, for .*\(awc_\w+\)/)
  const policy = await box(['aws', 'connect', '--trust-policy'])
  t.same(JSON.parse(policy.stdout), policyOf('ACCOUNT_ID'))
})

t.test('the documents are written for a static host', async (t) => {
  const dir = join(createTempDir(t, 'site'), 'oidc')
  t.match(await box(['federation', 'publish', dir]), {
    code: 0,
    stderr: /Wrote .*jwks and .*openid-configuration/,
  })
  const read = (name: string) => JSON.parse(readFileSync(join(dir, name), 'utf8'))
  const serve = async (path: string) => (await fetch(`${url}/oidc${path}`)).json()
  t.same(read('.well-known/openid-configuration'), await serve('/.well-known/openid-configuration'))
  t.same(read('jwks'), await serve('/jwks'))
  t.equal(read('.well-known/openid-configuration').jwks_uri, `${ISSUER}/jwks`)
  const used = createTempDir(t, 'publish')
  mkdirSync(join(used, 'jwks'))
  t.match(await box(['federation', 'publish', used]), { code: 1, stderr: /jwks cannot be written/ })
  t.same(readdirSync(used), ['jwks'], 'nothing that a host would serve is left')
  t.match(await box(['federation', 'publish', '/dev/null/x']), { code: 1, stderr: /cannot be written/ })
  t.match(await box(['federation', 'publish', dir], { BOXWOOD_API_KEY: federation.memberKey }), {
    code: 1,
    stderr: /\(not_owner\)/,
  })
})
