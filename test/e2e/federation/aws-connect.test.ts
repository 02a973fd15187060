// Links that create and connect a role: they work once, for an hour, and only for a role that the workspace can assume.
import t from 'tap'
import { hashSecret } from '../../../coordinator/http/hash-secret.ts'
import { createUserKey } from '../../support/limited-key.ts'
import { AUDIENCE, HOUR_MS, ISSUER, startFederation, toRoleArn } from './support.ts'

/** The parameters of the stack that a link opens. */
function readParameters(url: string) {
  const [page = '', query] = url.split('#/stacks/quickcreate?')
  return { page, ...Object.fromEntries(new URLSearchParams(query)) } as Record<string, string>
}

t.test('a link connects a role', async (t) => {
  const federation = await startFederation(t)
  const { api, addRole, workspaceId, memberKey, contractorKey, readEvents, advance, db, now, sts } =
    federation
  const create = async (body: object = {}) => {
    const { status, json } = await api('POST', '/aws-connect', body)
    t.equal(status, 201)
    const { param_ConnectToken: token = '' } = readParameters(json.url)
    return { ...(json as { id: string; url: string; expiresAt: string }), token }
  }
  const callBack = (body: object) => api('POST', '/aws-connect/callback', body, { key: null })
  const cancel = (id: string) => api('DELETE', `/aws-connect/${id}`)

  const first = await create()
  t.match(readParameters(first.url), {
    page: 'https://eu-central-1.console.aws.amazon.com/cloudformation/home?region=eu-central-1',
    templateURL: 'https://templates.s3.amazonaws.com/boxwood-role.yaml',
    stackName: /^[A-Za-z][A-Za-z0-9-]+$/,
    param_Issuer: ISSUER,
    param_Audience: AUDIENCE,
    param_SubjectPattern: `workspace:${workspaceId}:*`,
    param_CallbackUrl: 'https://boxes.example.com/api/v1/aws-connect/callback',
    param_ConnectId: first.id,
    param_ConnectToken: /^[\w-]{43}$/,
  })
  t.equal(Math.round((Date.parse(first.expiresAt) - now()) / HOUR_MS), 1)

  const link = await create({ profile: 'deploy' })
  const { id, token } = link
  const roleArn = toRoleArn('created')
  t.equal(
    (await callBack({ id: first.id, token: first.token, roleArn })).status,
    404,
    'cancelled by the new one',
  )
  t.equal((await callBack({ id, token: first.token, roleArn })).status, 404, 'the secret of another link')
  t.equal((await callBack({ id, token: 'x', roleArn })).status, 404)
  t.equal((await callBack({ id, token, roleArn: 'x' })).json.error, 'invalid_role_arn')
  t.same((await callBack({ id, token, roleArn })).json, {
    connected: false,
    message: 'AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity',
  })
  t.same((await api('GET', '/aws-roles')).json.roles, [], 'not before AWS has confirmed it')
  addRole('created')
  t.same((await callBack({ id, token, roleArn })).json, { connected: true, message: null })
  const calls = sts.calls.length
  t.same((await callBack({ id, token, roleArn })).json, { connected: true, message: null }, 'repeated')
  t.equal((await callBack({ id, token: 'x', roleArn })).status, 404)
  t.equal((await callBack({ id, token, roleArn: addRole('second') })).status, 404, 'it works once')
  t.equal(sts.calls.length, calls)
  t.equal((await cancel(id)).status, 404, 'spent')
  const [role] = (await api('GET', '/aws-roles')).json.roles
  t.match(role, { roleArn, profile: 'deploy', verifyError: null, createdBy: /^user:/ })
  t.ok(role.verifiedAt)

  t.test('it can be cancelled, and expires', async (t) => {
    const cancelled = await create()
    t.match(await cancel(cancelled.id), { status: 200, json: { cancelled: true } })
    t.equal((await cancel(cancelled.id)).status, 404)
    t.equal((await callBack({ id: cancelled.id, token: cancelled.token, roleArn })).status, 404)
    const expired = await create()
    advance(HOUR_MS)
    t.equal((await callBack({ id: expired.id, token: expired.token, roleArn })).status, 404)
    t.equal((await cancel(expired.id)).status, 404)
    for (const unknown of ['x', 'awc_0']) t.equal((await cancel(unknown)).status, 404)
  })

  t.test('a profile that was taken meanwhile is not connected', async (t) => {
    const late = await create({ profile: 'late' })
    await api('POST', '/aws-roles', { roleArn: toRoleArn('other'), profile: 'late' })
    addRole('late')
    const { json } = await callBack({ id: late.id, token: late.token, roleArn: toRoleArn('late') })
    t.match(json, { connected: false, message: /has the profile late/ })
    t.match(await api('POST', '/aws-connect', { profile: 'late' }), { json: { error: 'profile_taken' } })
  })

  t.test('a link ends with the rights of its creator', async (t) => {
    const link = await create()
    await db.updateTable('users').set({ role: 'member' }).where('id', '=', role.createdBy.slice(5)).execute()
    t.equal((await callBack({ id: link.id, token: link.token, roleArn })).status, 404)
    await db.updateTable('users').set({ role: 'owner' }).where('id', '=', role.createdBy.slice(5)).execute()
  })

  t.test('a link ends with the key of its creator', async (t) => {
    const ofKey = await createUserKey(federation, 'owner')
    const { json } = await api('POST', '/aws-connect', {}, { key: ofKey })
    const { param_ConnectToken: token } = readParameters(json.url)
    await db.updateTable('api_keys').set({ revoked_at: 1 }).where('hash', '=', hashSecret(ofKey)).execute()
    t.equal((await callBack({ id: json.id, token, roleArn })).status, 404)
  })

  t.test('only owners create and cancel links', async (t) => {
    const { id } = await create()
    for (const [key, error] of [
      [memberKey, 'not_owner'],
      [contractorKey, 'not_allowed'],
    ]) {
      t.equal((await api('POST', '/aws-connect', {}, { key: key ?? null })).json.error, error)
      t.equal((await api('DELETE', `/aws-connect/${id}`, undefined, { key: key ?? null })).json.error, error)
    }
    t.equal((await api('POST', '/aws-connect', { profile: 'a b' })).json.error, 'invalid_profile')
  })

  t.test('events have no secret of a link', async (t) => {
    t.match((await readEvents('aws_connect.create')).at(-1)?.detail, { connectId: /^awc_/ })
    t.equal((await readEvents('aws_connect.cancel')).length, 1)
    t.match((await readEvents('aws_role.connect'))[0], { actor_kind: 'user', detail: { profile: 'deploy' } })
  })
})

t.test('without a template in S3, or an https address, there are no links', async (t) => {
  for (const env of [{ BOXWOOD_AWS_TEMPLATE_URL: '' }, { BOXWOOD_PUBLIC_URL: 'http://boxes.example.com' }]) {
    const { api } = await startFederation(t, { env: env as Record<string, string> })
    t.match(await api('POST', '/aws-connect', {}), {
      status: 503,
      json: { error: 'aws_quick_connect_unavailable' },
    })
    t.match((await api('GET', '/aws-roles')).json, { enabled: true, quickConnect: false })
  }
})
