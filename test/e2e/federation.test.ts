// Programs on a box get credentials of AWS by profile, from an STS that verifies the token of the box.
import { randomInt } from 'node:crypto'
import { existsSync } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { JWTPayload } from 'jose'
import t, { type Test } from 'tap'
import { boxPathsIn } from '../../coordinator/providers/local/machine-file.ts'
import { startUpstream } from '../support/broker/upstream.ts'
import { type FakeSts, startFakeSts } from '../support/fake-sts.ts'
import { buildCallerIdentityProgram } from '../support/sts/box-program.ts'
import { createTestIssuer, TEST_ISSUER } from '../support/sts/test-issuer.ts'
import { createTrustPolicy } from '../support/sts/trust-policy.ts'
import { type CoordinatorWithBox, HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'

const ACCOUNT = '123456789012'
const REGION = 'eu-central-1'
const HOUR_MS = 3_600_000
const SESSION = 'boxwood-apple'
const SIGNED_IN = `arn:aws:sts::${ACCOUNT}:assumed-role/deploy/${SESSION}`
const NODE = `node=/run/boxwood/bin/node; [ -x "$node" ] || node='${process.execPath}'; exec "$node"`
/** Boxes see only the programs in /usr. */
const CLI = '/usr/bin/aws'

const toRoleArn = (name: string) => `arn:aws:iam::${ACCOUNT}:role/${name}`

async function startSts(t: Test) {
  let offset = 0
  const now = () => Date.now() + offset
  const issuer = await createTestIssuer(now)
  const sts = await startFakeSts(t, { issuer: TEST_ISSUER, readDocument: issuer.readDocument, now })
  for (const [name, workspace] of Object.entries({ deploy: 'ours', foreign: 'foreign' }))
    sts.roles.set(
      toRoleArn(name),
      createTrustPolicy({
        issuer: TEST_ISSUER,
        account: ACCOUNT,
        audience: 'sts.amazonaws.com',
        subject: `workspace:${workspace}:*`,
      }),
    )
  const advance = (ms: number) => {
    offset += ms
  }
  return { sts, issuer, advance }
}

/** Sends the agent what the box gets: a token, and the names of roles by profile. */
async function deliver(
  { instance, box }: CoordinatorWithBox,
  token: string | null,
  roles: Record<string, string> = {},
): Promise<unknown> {
  const profiles = Object.entries(roles).map(([name, role]) => ({
    name,
    roleArn: toRoleArn(role),
    roleSessionName: SESSION,
  }))
  const tunnel = await instance.context.tunnels.wait(box.id, 10_000)
  const { body } = await tunnel.call({
    method: 'PUT',
    path: '/cloud-credentials',
    body: JSON.stringify({ token: token === null ? null : { content: token }, profiles }),
    signal: AbortSignal.timeout(10_000),
    timeoutMs: 10_000,
    maxBytes: () => 65_536,
  })
  return JSON.parse(String(body))
}

t.test('a box with a role', async (t) => {
  const { sts, issuer, advance } = await startSts(t)
  const coordinator = await startCoordinatorWithBox(t, {
    env: { ...HIGH_EDGE_LIMITS, BOXWOOD_LOCAL_NETWORK: 'host' },
  })
  const { boxRequest } = coordinator
  const run = async (command: string, env: Record<string, string> = {}): Promise<string> => {
    const { json } = await boxRequest('POST', '/exec', { command, env: { AWS_REGION: REGION, ...env } })
    return (String(json.stdout) + String(json.stderr)).trim()
  }
  const upload = async (name: string, content: string | Uint8Array) => {
    const { status } = await boxRequest('PUT', `/upload?path=${name}`, content)
    t.equal(status, 200, name)
  }
  await upload('identity.cjs', await buildCallerIdentityProgram())
  const useSdk = (env: Record<string, string>) =>
    run(`${NODE} ~/identity.cjs`, { AWS_ENDPOINT_URL_STS: sts.url, ...env })
  const roles = { prod: 'deploy', default: 'deploy', foreign: 'foreign' }
  const connect = async (claims: JWTPayload = {}) => deliver(coordinator, await issuer.sign(claims), roles)
  t.same(await connect(), { written: ['prod', 'default', 'foreign'], failed: [] })

  await t.test('the SDK gets credentials by profile, and by token file', async (t) => {
    t.equal(await useSdk({ AWS_PROFILE: 'prod' }), SIGNED_IN)
    t.equal(await useSdk({}), SIGNED_IN, 'the profile default')
    const token = await run('echo ~/.boxwood/aws/token')
    const env = { AWS_ROLE_ARN: toRoleArn('deploy'), AWS_ROLE_SESSION_NAME: SESSION }
    t.equal(await useSdk({ ...env, AWS_WEB_IDENTITY_TOKEN_FILE: token }), SIGNED_IN)
  })

  await t.test('a role of another workspace, and a token for another audience, are refused', async (t) => {
    t.equal(await useSdk({ AWS_PROFILE: 'foreign' }), 'AccessDenied')
    await connect({ aud: 'storage.example.com' })
    t.match(await useSdk({ AWS_PROFILE: 'prod' }), /^InvalidIdentityToken/)
    await connect({ sub: 'workspace:foreign:box:fig' })
    t.equal(await useSdk({ AWS_PROFILE: 'prod' }), 'AccessDenied')
    t.equal(await useSdk({ AWS_PROFILE: 'foreign' }), SIGNED_IN.replace('deploy', 'foreign'))
  })

  await t.test('after an hour the token has expired, and the next one is accepted', async (t) => {
    await connect()
    advance(HOUR_MS)
    t.equal(await useSdk({ AWS_PROFILE: 'prod' }), 'ExpiredTokenException')
    await connect()
    t.equal(await useSdk({ AWS_PROFILE: 'prod' }), SIGNED_IN)
  })

  const endpoint = await serveEndpoint(t, coordinator, sts)
  await t.test('the AWS CLI', { skip: endpoint.skip }, async (t) => {
    await upload('ca.pem', endpoint.certificate)
    const useCli = (profile: string) =>
      // The CLI judges by the clock of the box whether the credentials in its cache have expired.
      run(
        `rm -rf ~/.aws/cli; export AWS_CA_BUNDLE=~/ca.pem; ${CLI} --profile ${profile} sts get-caller-identity --query Arn --output text`,
      )
    t.equal(await useCli('prod'), SIGNED_IN)
    t.match(await useCli('foreign'), /\(AccessDenied\) when calling the AssumeRoleWithWebIdentity operation/)
    advance(HOUR_MS)
    t.match(await useCli('prod'), /\(ExpiredTokenException\)/)
  })

  await t.test('a disconnected role leaves neither a profile nor a token', async (t) => {
    t.same(await deliver(coordinator, null), { written: [], failed: [] })
    t.equal(await useSdk({ AWS_PROFILE: 'prod' }), 'CredentialsProviderError')
    t.equal(await run('ls ~/.boxwood/aws; cat ~/.aws/config'), '')
  })
})

/**
 * Serves the STS at the address of AWS, as the box sees it: by its /etc/hosts. The CLI of older distributions has no setting for
 * the endpoint. skip: why that is not possible.
 */
async function serveEndpoint(
  t: Test,
  { dataDir, box, boxRequest }: CoordinatorWithBox,
  sts: FakeSts,
): Promise<{ certificate: string; skip: string | false }> {
  const unavailable = (skip: string) => ({ certificate: '', skip })
  if (!existsSync(CLI)) return unavailable('the AWS CLI is not installed')
  const hosts = join(boxPathsIn(join(dataDir, 'boxes', box.id)).etc, 'hosts')
  // No other test has the address, so the port need not be free elsewhere.
  const host = `127.${[0, 0, 0].map(() => randomInt(1, 255)).join('.')}`
  await appendFile(hosts, `${host} sts.${REGION}.amazonaws.com\n`)
  const { json } = await boxRequest('POST', '/exec', { command: `grep -c '^${host} ' /etc/hosts` })
  if (json.stdout !== '1\n')
    return unavailable('boxes of this isolation level have the /etc/hosts of the machine')
  try {
    const { authority } = await startUpstream(t, sts.listener, { host, port: 443 })
    return { certificate: authority.certificate, skip: false }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    return unavailable('the user may not listen on port 443')
  }
}
