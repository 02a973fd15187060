// The AWS roles of a workspace: every route, role and code (spec §4.6).
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ACCOUNT, AUDIENCE, ISSUER, startFederation, toRoleArn } from './support.ts'

t.test('roles are connected, verified and disconnected', async (t) => {
  const federation = await startFederation(t)
  const { api, addRole, sts, workspaceId, memberKey, contractorKey, readEvents, advance, db } = federation

  const empty = (await api('GET', '/aws-roles', undefined, { key: memberKey })).json
  t.same(empty, {
    enabled: true,
    missing: [],
    quickConnect: true,
    issuer: ISSUER,
    audience: AUDIENCE,
    workspaceId,
    subjectPattern: `workspace:${workspaceId}:*`,
    tokenPath: '~/.boxwood/aws/token',
    limit: 10,
    roles: [],
  })

  const deploy = addRole('deploy')
  const created = await api('POST', '/aws-roles', { roleArn: deploy })
  t.match(created, {
    status: 201,
    json: {
      role: {
        id: /^awr_/,
        roleArn: deploy,
        profile: 'default',
        verifiedAt: /^\d{4}-/,
        verifiedArn: `arn:aws:sts::${ACCOUNT}:assumed-role/deploy/boxwood-verify`,
        verifyError: null,
        createdBy: /^user:usr_/,
      },
    },
  })
  t.match(sts.calls, [{ subject: `workspace:${workspaceId}:verify`, error: null }])
  const { id } = created.json.role

  for (const body of [{ roleArn: deploy }, { roleArn: deploy, profile: 'default' }]) {
    const again = await api('POST', '/aws-roles', body)
    t.equal(again.status, 200, 'connected already')
    t.same(again.json, created.json)
  }
  t.equal(sts.calls.length, 1, 'an existing role is not verified again')
  await db.updateTable('aws_roles').set({ verified_at: null, verified_arn: null }).execute()
  t.match(await api('POST', '/aws-roles', { roleArn: deploy }), {
    status: 200,
    json: { role: { verifiedAt: /^\d{4}-/, verifyError: null } },
  })
  t.equal(sts.calls.length, 2, 'unless the coordinator has stopped before the first verification')
  const code = async (body: object, key?: string) =>
    (await api('POST', '/aws-roles', body, key === undefined ? {} : { key })).json.error
  t.equal(await code({ roleArn: deploy, profile: 'other' }), 'already_connected')
  t.equal(await code({ roleArn: toRoleArn('a'), profile: 'default' }), 'profile_taken')
  for (const roleArn of [
    '',
    'deploy',
    'arn:aws:iam::1:role/a',
    `arn:aws:iam::${ACCOUNT}:user/a`,
    5,
    undefined,
  ])
    t.equal(await code({ roleArn }), 'invalid_role_arn', String(roleArn))
  for (const profile of ['', ' a', 'a b', '[a]', 'a\nb', 'x'.repeat(65), 5])
    t.equal(await code({ roleArn: toRoleArn('a'), profile }), 'invalid_profile', String(profile))
  t.equal(await code({ roleArn: deploy, extra: 1 }), 'bad_request')
  t.equal(await code({ roleArn: deploy }, memberKey), 'not_owner')
  t.equal(await code({ roleArn: deploy }, contractorKey), 'not_allowed')

  const foreign = addRole('team/=foreign', 'ws_other')
  const refused = await api('POST', '/aws-roles', { roleArn: foreign })
  t.match(refused, {
    status: 201,
    json: {
      role: {
        profile: 'foreign',
        verifiedAt: null,
        verifiedArn: null,
        verifyError: 'AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity',
      },
    },
  })
  const verify = (roleId: string, key?: string) =>
    api('POST', `/aws-roles/${roleId}/verify`, undefined, key === undefined ? {} : { key })
  addRole('team/=foreign')
  t.match(await verify(refused.json.role.id), { status: 200, json: { role: { verifyError: null } } })
  sts.roles.clear()
  t.match((await verify(id)).json.role, { verifiedAt: null, verifiedArn: null, verifyError: /^AccessDenied/ })
  t.equal((await verify(id, memberKey)).json.error, 'not_owner')
  t.equal((await verify(id, contractorKey)).json.error, 'not_allowed')
  for (const unknown of ['awr_unknown', 'x', 'awc_0']) t.equal((await verify(unknown)).status, 404)

  for (let n = 2; n < 10; n += 1) {
    advance(60_000)
    t.equal((await api('POST', '/aws-roles', { roleArn: toRoleArn(`r${n}`) })).json.role.profile, `r${n}`)
  }
  t.equal(await code({ roleArn: toRoleArn('r10') }), 'aws_roles_limit')

  const remove = (key?: string) =>
    api('DELETE', `/aws-roles/${id}`, undefined, key === undefined ? {} : { key })
  t.equal((await remove(memberKey)).json.error, 'not_owner')
  t.equal((await remove(contractorKey)).json.error, 'not_allowed')
  t.match(await remove(), { status: 200, json: { revoked: true } })
  t.match(await remove(), { status: 200, json: { revoked: true } }, 'as the first time')
  const list = await api('GET', '/aws-roles', undefined, { key: memberKey })
  t.equal(list.json.roles.length, 9)
  t.equal((await api('GET', '/aws-roles', undefined, { key: contractorKey })).json.error, 'not_allowed')

  const events = await readEvents('aws_role.connect')
  t.equal(events.length, 10)
  t.same(events[0]?.detail, { roleId: id, roleArn: deploy, profile: 'default' })
  t.match(await readEvents('aws_role.verify'), [
    { detail: { verified: true } },
    { detail: { verified: false } },
  ])
  t.match(await readEvents('aws_role.disconnect'), [{ detail: { profile: 'default' } }])
})

t.test('verifications are limited', async (t) => {
  const { api, addRole, advance, freeze } = await startFederation(t)
  freeze()
  const { role } = (await api('POST', '/aws-roles', { roleArn: addRole('deploy') })).json
  const statuses = []
  for (let n = 0; n < 20; n += 1) statuses.push((await api('POST', `/aws-roles/${role.id}/verify`)).status)
  t.same(statuses, [...Array(19).fill(200), 429])
  advance(60_000)
  t.equal((await api('POST', `/aws-roles/${role.id}/verify`)).status, 200)
})

t.test('responses that are not of STS are errors of the verification', async (t) => {
  let body = ''
  const connected = Promise.withResolvers<void>()
  const server = createServer(async (_request, response) => {
    await connected.promise
    response.writeHead(503).end(body)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { api, box, readCredentials } = await startFederation(t, { env: { AWS_ENDPOINT_URL_STS: endpoint } })
  const connecting = api('POST', '/aws-roles', { roleArn: toRoleArn('deploy') })
  await waitUntil(
    'boxes have the role, before AWS responds',
    async () => (await readCredentials(box.id))?.profiles.length === 1,
  )
  connected.resolve()
  const { role } = (await connecting).json
  t.equal(role.verifyError, 'STS responded with status 503.')
  const verify = async () => (await api('POST', `/aws-roles/${role.id}/verify`)).json.role.verifyError
  body = `<Error><Code>A&amp;B\u001b</Code><Message>${'x'.repeat(1000)}</Message></Error>`
  const error = await verify()
  t.match(error, /^A&B\uFFFD: x+$/)
  t.ok(error.length < 600)
  body = 'x'.repeat(100_000)
  t.match(await verify(), /too large/)
  body = '<AssumedRoleUser><Arn>arn:evil</Arn></AssumedRoleUser>'
  t.match(await verify(), /status 503/)
  server.close()
  server.closeAllConnections()
  t.match(await verify(), /could not be reached: connect ECONNREFUSED/)
})

t.test('without an issuer federation is off', async (t) => {
  const { api, send } = await startTestCoordinator(t)
  const { json } = await api('GET', '/aws-roles')
  t.match(json, { enabled: false, quickConnect: false, issuer: null, roles: [] })
  t.match(json.missing, [/BOXWOOD_OIDC_ISSUER/])
  const disabled = { status: 503, json: { error: 'aws_federation_disabled' } }
  t.match(await api('POST', '/aws-roles', { roleArn: toRoleArn('deploy') }), disabled)
  t.match(await api('POST', '/aws-roles/awr_0/verify'), disabled)
  t.match(await api('POST', '/aws-connect', {}), disabled)
  t.match(await api('GET', '/federation/documents'), disabled)
  t.match(await api('POST', '/operator/federation/rotate'), disabled)
  t.equal((await send('GET', '/oidc/jwks')).status, 404)
})
