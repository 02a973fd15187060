// Programs on a box get credentials of AWS by profile and without a key, from an STS that verifies the token of the box by the
// documents of the coordinator.

import { randomInt } from 'node:crypto'
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t, { type Test } from 'tap'
import { boxPathsIn } from '../../coordinator/providers/local/machine-file.ts'
import { startUpstream } from '../support/broker/upstream.ts'
import { type FakeSts, startFakeSts } from '../support/fake-sts.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { findProgram, requires } from '../support/requires.ts'
import { buildCallerIdentityProgram } from '../support/sts/box-program.ts'
import { createTrustPolicy } from '../support/sts/trust-policy.ts'
import { type CoordinatorWithBox, HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'

const ISSUER = 'https://boxes.example.com/oidc'
const ACCOUNT = '123456789012'
const REGION = 'eu-central-1'
const HOUR_MS = 3_600_000
const NODE = `node=/run/boxwood/bin/node; [ -x "$node" ] || node='${process.execPath}'; exec "$node"`
const CLI = findProgram('aws')
const TOKEN = '~/.boxwood/aws/token'

const toRoleArn = (name: string) => `arn:aws:iam::${ACCOUNT}:role/ci/${name}`

/** The coordinator and AWS have the same time, which `advance` changes. */
async function setUp(t: Test) {
  let offset = 0
  const clock = { now: () => Date.now() + offset }
  let url = ''
  let documentsRead = 0
  const readDocument = async (path: string) => {
    documentsRead += 1
    return (await fetch(`${url}/oidc${path}`)).json()
  }
  const sts = await startFakeSts(t, { issuer: ISSUER, readDocument, now: clock.now })
  const env = {
    ...limitsEnv(HIGH_EDGE_LIMITS),
    BOXWOOD_LOCAL_NETWORK: 'host',
    BOXWOOD_PUBLIC_URL: 'https://boxes.example.com',
    BOXWOOD_OIDC_ISSUER: ISSUER,
    AWS_ENDPOINT_URL_STS: sts.url,
  }
  const coordinator = await startCoordinatorWithBox(t, { env, clock }, (listening) => {
    url = listening
  })
  const { api, edge, box, instance } = coordinator
  const request = async (method: string, path: string, body?: object) => {
    const { status, json } = await api(method, path, body)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(json)}`)
    return json
  }
  const run = async (command: string, env: Record<string, string> = {}, boxId = box.id): Promise<string> => {
    const { json } = await edge(boxId, 'POST', '/exec', { command, env: { AWS_REGION: REGION, ...env } })
    return (String(json.stdout) + String(json.stderr)).trim()
  }
  const { cloudCredentials } = instance.context
  return {
    ...coordinator,
    sts,
    request,
    run,
    now: clock.now,
    /** By AWS. */
    countDocumentsRead: () => documentsRead,
    /** Prints the role, or the name of the error. */
    useSdk: (env: Record<string, string>, boxId = box.id) =>
      run(`${NODE} ~/identity.cjs`, { AWS_ENDPOINT_URL_STS: sts.url, ...env }, boxId),
    upload: async (path: string, content: string | Uint8Array, boxId = box.id) => {
      const { status } = await edge(boxId, 'PUT', `/upload?path=${path}`, content)
      if (status !== 200) throw new Error(`upload of ${path}: ${status}`)
    },
    advance: (ms: number) => {
      offset += ms
    },
    /** What a timer does when half of the life of a token has passed. */
    async refreshTokens() {
      cloudCredentials.sendDue()
      await cloudCredentials.whenIdle()
    },
  }
}

t.test('boxes with the roles of their workspace', async (t) => {
  const coordinator = await setUp(t)
  const { sts, box, request, run, useSdk, upload, waitForState, instance } = coordinator
  const { advance, now, refreshTokens, countDocumentsRead } = coordinator
  const { cloudCredentials, issuer } = instance.context
  const signedIn = `arn:aws:sts::${ACCOUNT}:assumed-role/deploy/boxwood-${box.hostname}`
  const program = await buildCallerIdentityProgram()
  await upload('identity.cjs', program)
  const { audience, subjectPattern, workspaceId } = await request('GET', '/aws-roles')
  const trust = { issuer: ISSUER, account: ACCOUNT, audience }
  sts.roles.set(toRoleArn('deploy'), createTrustPolicy({ ...trust, subject: subjectPattern }))
  sts.roles.set(toRoleArn('foreign'), createTrustPolicy({ ...trust, subject: 'workspace:other:*' }))
  // Creates the signing keys. AWS reads them an hour later, so they can be rotated before it reads them again.
  const keysCreatedAt = now()
  await request('GET', '/federation/documents')
  advance(HOUR_MS)

  /** The SDK prefers the profile `default` to the variables. */
  const useTokenFile = async (path: string) =>
    useSdk({
      AWS_CONFIG_FILE: '/dev/null',
      AWS_ROLE_ARN: toRoleArn('deploy'),
      AWS_ROLE_SESSION_NAME: `boxwood-${box.hostname}`,
      AWS_WEB_IDENTITY_TOKEN_FILE: await run(`echo ${path}`),
    })

  const roleIds: string[] = []
  await t.test('roles are verified when they are connected, and running boxes get them', async (t) => {
    t.equal(await useSdk({ AWS_PROFILE: 'default' }), 'CredentialsProviderError')
    const { role } = await request('POST', '/aws-roles', { roleArn: toRoleArn('deploy') })
    t.match(role, { profile: 'default', verifyError: null, verifiedArn: /assumed-role\/deploy\// })
    const foreign = await request('POST', '/aws-roles', { roleArn: toRoleArn('foreign') })
    t.match(foreign.role, { profile: 'foreign', verifiedArn: null, verifyError: /AccessDenied/ })
    roleIds.push(role.id, foreign.role.id)
    await cloudCredentials.whenIdle()
    t.match(await run(`stat -c '%a %U' ${TOKEN}; id -un`), /^600 (\w+)\n\1$/)
  })

  await t.test('the SDK gets credentials by profile, and by token file', async (t) => {
    t.equal(await useSdk({}), signedIn)
    t.equal(await useSdk({ AWS_PROFILE: 'default' }), signedIn)
    t.equal(await useTokenFile(TOKEN), signedIn)
  })

  /** Uses a token that is not the current one of the box. */
  const useToken = async (token: string) => {
    await upload('other-token', token)
    return useTokenFile('~/other-token')
  }
  const issue = async (workspace: string, audienceOfToken: string) =>
    (await issuer.issue({ workspaceId: workspace, boxId: box.id }, audienceOfToken)).content.reveal()

  await t.test('a foreign workspace and a wrong audience are refused', async (t) => {
    t.equal(await useSdk({ AWS_PROFILE: 'foreign' }), 'AccessDenied')
    t.equal(await useToken(await issue(workspaceId, audience)), signedIn)
    t.equal(await useToken(await issue('other', audience)), 'AccessDenied')
    t.match(await useToken(await issue(workspaceId, 'storage.example.com')), /^InvalidIdentityToken/)
  })

  await t.test('tokens are replaced at half of their life, and expire after an hour', async (t) => {
    const first = await run(`cat ${TOKEN}`)
    advance(HOUR_MS / 2)
    await refreshTokens()
    const second = await run(`cat ${TOKEN}`)
    const { iat = 0, exp } = decodeJwt(second)
    t.ok(iat >= (decodeJwt(first).iat ?? 0) + 1800, 'issued now')
    t.equal(exp, iat + 3600, 'a complete hour')
    t.equal(await useToken(first), signedIn)
    advance(HOUR_MS / 2)
    t.equal(await useToken(first), 'ExpiredTokenException')
    t.equal(await useSdk({}), signedIn)
  })

  const cli = await serveEndpoint(t, coordinator, sts)
  if (cli.skip === false) await upload('ca.pem', cli.certificate)
  const useCli = (profile: string) =>
    // The CLI judges by the clock of the box whether the credentials in its cache have expired.
    run(
      `rm -rf ~/.aws/cli; export AWS_CA_BUNDLE=~/ca.pem; ${CLI} --profile ${profile} sts get-caller-identity --query Arn --output text`,
    )
  await t.test('the AWS CLI gets credentials by profile', { skip: cli.skip }, async (t) => {
    t.equal(await useCli('default'), signedIn)
    t.match(await useCli('foreign'), /\(AccessDenied\) when calling the AssumeRoleWithWebIdentity operation/)
    advance(HOUR_MS)
    t.match(await useCli('default'), /\(ExpiredTokenException\)/)
  })

  await t.test('a rotation of the signing key interrupts nothing', async (t) => {
    t.match(await request('POST', '/operator/federation/rotate'), { rotated: false })
    advance(keysCreatedAt + 24.1 * HOUR_MS - now())
    await refreshTokens()
    const readBefore = countDocumentsRead()
    const old = await run(`cat ${TOKEN}`)
    t.match(await request('POST', '/operator/federation/rotate'), { rotated: true })
    t.equal(await useSdk({}), signedIn, 'with the token of the previous key')
    advance(HOUR_MS / 2)
    await refreshTokens()
    const { kid } = decodeProtectedHeader(await run(`cat ${TOKEN}`))
    t.not(kid, decodeProtectedHeader(old).kid)
    t.equal(await useSdk({}), signedIn, 'with that of the next one')
    if (cli.skip === false) t.equal(await useCli('default'), signedIn, 'also by the CLI')
    t.equal(countDocumentsRead(), readBefore, 'AWS knew the key before it was used')
    advance(HOUR_MS)
    await refreshTokens()
    t.equal(await useSdk({}), signedIn)
    t.not(countDocumentsRead(), readBefore, 'also when AWS has read the keys again')
  })

  await t.test('a box that was suspended for hours wakes with a new token', async (t) => {
    await request('POST', `/boxes/${box.id}/suspend`)
    await waitForState(box.id, 'suspended')
    advance(2 * HOUR_MS)
    await request('POST', `/boxes/${box.id}/wake`)
    await waitForState(box.id, 'running')
    t.equal(await useSdk({}), signedIn)
  })

  await t.test(
    'the environment of a box decides, and a restricted or deleted box gets no token',
    async (t) => {
      const { environment } = await request('POST', '/environments', {
        name: 'web',
        toggles: { cloud: true },
      })
      const { box: second } = await request('POST', '/boxes', { name: 'fig', environment: 'web' })
      await waitForState(second.id, 'running')
      const token = await run(`cat ${TOKEN}`, {}, second.id)
      t.equal(decodeJwt(token).box_id, second.id)
      t.equal(await useToken(token), signedIn)
      t.match(await run('cat ~/.aws/config', {}, second.id), '[default]')

      await request('POST', `/environments/${environment.id}/toggles`, { restricted: true })
      await request('POST', `/environments/${environment.id}/upgrade`)
      await cloudCredentials.whenIdle()
      t.equal(await run('cat ~/.aws/config; ls ~/.boxwood/aws', {}, second.id), '')

      // AWS cannot know that a box is deleted: its last token expires.
      await request('DELETE', `/boxes/${second.id}`)
      advance(HOUR_MS)
      t.equal(await useToken(token), 'ExpiredTokenException')
    },
  )

  await t.test('a disconnected role leaves neither a profile nor a token', async (t) => {
    await refreshTokens()
    const [deploy, foreign] = roleIds
    await request('DELETE', `/aws-roles/${foreign}`)
    await cloudCredentials.whenIdle()
    t.equal(await run('grep -c role_arn ~/.aws/config'), '1')
    t.equal(await useSdk({}), signedIn)
    await request('DELETE', `/aws-roles/${deploy}`)
    await cloudCredentials.whenIdle()
    t.equal(await run('cat ~/.aws/config; ls ~/.boxwood/aws'), '')
    t.equal(await useSdk({}), 'CredentialsProviderError')
  })
})

/**
 * Serves the STS at the address of AWS, as the box sees it: by its /etc/hosts. The CLI of older distributions has no setting for
 * the endpoint. skip: why that is not possible.
 */
async function serveEndpoint(
  t: Test,
  { dataDir, box, boxRequest }: Pick<CoordinatorWithBox, 'dataDir' | 'box' | 'boxRequest'>,
  sts: FakeSts,
): Promise<{ certificate: string; skip: string | false }> {
  const unavailable = (skip: string) => ({ certificate: '', skip })
  const missing = requires('aws')
  if (missing !== false) return unavailable(missing)
  if (!CLI?.startsWith('/usr/')) return unavailable(`boxes see only the programs in /usr, and not ${CLI}`)
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
    const { code = '' } = error as NodeJS.ErrnoException
    if (!['EACCES', 'EADDRINUSE'].includes(code)) throw error
    return unavailable(`port 443 is not available: ${code}`)
  }
}
