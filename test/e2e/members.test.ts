// Members and workspaces over HTTP: who may do what, and what the responses contain.
import t from 'tap'
import { startSmtpServer } from '../coordinator/identity/mail/smtp-server.ts'
import { type RequestOptions, startTestCoordinator } from '../support/coordinator.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'

t.test('members and workspaces', async (t) => {
  const smtp = await startSmtpServer(t)
  const coordinator = await startTestCoordinator(t, { env: { BOXWOOD_SMTP_URL: smtp.url } })
  const { api, instance } = coordinator
  const owner = await createTestSession(coordinator)
  const member = await createTestSession(coordinator, 'member')
  const contractor = await createTestSession(coordinator, 'contractor')
  const as = (session: RequestOptions) => (method: string, path: string, body?: unknown) =>
    api(method, path, body, session)
  const audited = async (kind: string) => {
    const { json } = await api('GET', `/audit?kind=${kind}`)
    return json.events.map((event: { detail: unknown }) => event.detail)
  }

  t.test('an owner invites, changes and removes members', async (t) => {
    const invited = await as(owner)('POST', '/members', { email: ' Ada@Example.COM ', role: 'member' })
    t.equal(invited.status, 201)
    t.match(invited.json, {
      emailed: true,
      member: { email: 'ada@example.com', name: 'ada', role: 'member', status: 'invited', joinedAt: null },
    })
    const { id } = invited.json.member
    const again = await as(owner)('POST', '/members', { email: 'ADA@example.com', role: 'owner' })
    t.match(again, { status: 409, json: { error: 'member_exists' } })

    const changed = await as(owner)('PATCH', `/members/${id}`, { role: 'contractor', name: 'Ada' })
    t.match(changed, { status: 200, json: { member: { id, role: 'contractor', name: 'Ada' } } })
    for (const body of [
      {},
      { email: 'b@example.com' },
      { role: 'admin' },
      { name: 'a\u0007' },
      { rolle: 'owner' },
    ])
      t.match(await as(owner)('PATCH', `/members/${id}`, body), {
        status: 400,
        json: { error: 'bad_request' },
      })

    t.equal((await as(owner)('DELETE', `/members/${id}`)).status, 204)
    t.equal((await as(owner)('DELETE', `/members/${id}`)).status, 204)
    for (const unknown of [id, 'usr_000000000000000000000000', 'x'])
      t.match(await as(owner)('PATCH', `/members/${unknown}`, { name: 'a' }), { status: 404 })
    t.equal((await as(owner)('DELETE', '/members/usr_000000000000000000000000')).status, 404)
    t.match(await audited('member.invite'), [{ userId: id, email: 'ada@example.com', role: 'member' }])
    t.match(await audited('member.update'), [{ userId: id, role: 'contractor', previousRole: 'member' }])
    t.match(await audited('member.remove'), [{ userId: id, email: 'ada@example.com' }])
  })

  t.test('an invited person gets a mail, and joins with the first sign-in', async (t) => {
    const email = 'grace@example.com'
    await as(owner)('POST', '/members', { email, name: 'Grace', role: 'member' })
    const waitForMail = (subject: string) =>
      waitUntil(`a mail: ${subject}`, () =>
        smtp.mails.find(({ to, message }) => to.includes(email) && message.includes(`Subject: ${subject}`)),
      )
    const { message } = await waitForMail('Invitation to the workspace Boxwood')
    t.ok(message.includes(`${coordinator.url}/sign-in`))
    const { json } = await api('POST', '/sign-in', { email }, { key: null })
    const code = /[A-Z]{4}-[A-Z]{4}/.exec((await waitForMail('Boxwood sign-in code')).message)?.[0]
    const signedIn = await api('POST', '/sign-in/confirm', { id: json.id, code }, { key: null })
    t.equal(signedIn.status, 200)
    const { members } = (await as(owner)('GET', '/members')).json
    const grace = members.find((each: { email: string }) => each.email === email)
    t.match(grace, { name: 'Grace', status: 'active', joinedAt: String, lastActiveAt: String })
    t.equal((await as(owner)('DELETE', `/members/${grace.id}`)).status, 204)
    const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? ''
    t.equal((await api('GET', '/workspace', undefined, { key: null, headers: { cookie } })).status, 401)
  })

  t.test('invalid email addresses', async (t) => {
    for (const email of [
      'a',
      'a@b',
      'a b@example.com',
      `${'a'.repeat(250)}@example.com`,
      'a@example.com\nBcc: b',
    ])
      t.match(await as(owner)('POST', '/members', { email, role: 'member' }), {
        status: 400,
        json: { error: 'bad_request', message: /^email must be an email address/ },
      })
  })

  t.test('only owners change members; contractors do not read them', async (t) => {
    t.match(
      (await as(member)('GET', '/members')).json.members.map(({ role }: { role: string }) => role).sort(),
      ['contractor', 'member', 'owner'],
    )
    t.match(await as(contractor)('GET', '/members'), { status: 403, json: { error: 'not_allowed' } })
    const { userId } = owner
    for (const [method, path, body] of [
      ['POST', '/members', { email: 'b@example.com', role: 'owner' }],
      ['PATCH', `/members/${member.userId}`, { role: 'owner' }],
      ['DELETE', `/members/${userId}`, undefined],
      ['DELETE', '/members/usr_unknown', undefined],
    ] as const) {
      t.match(await as(member)(method, path, body), { status: 403, json: { error: 'not_owner' } })
      t.match(await as(contractor)(method, path, body), { status: 403, json: { error: 'not_allowed' } })
      t.match(await api(method, path, body), { status: 401, json: { error: 'unauthorized' } }, 'an API key')
    }
    t.match(await as(owner)('DELETE', `/members/${userId}`), { status: 409, json: { error: 'last_owner' } })
    t.match(await as(owner)('PATCH', `/members/${userId}`, { role: 'member' }), { status: 409 })
  })

  t.test('a member who leaves is signed out, and the key stops', async (t) => {
    const leaving = await createTestSession(coordinator, 'contractor')
    const { json } = await as(leaving)('POST', '/keys', { name: 'laptop' })
    const key = { key: json.secret as string }
    t.equal((await api('GET', '/me', undefined, key)).status, 200)
    t.equal((await as(leaving)('DELETE', `/members/${leaving.userId}`)).status, 204)
    t.equal((await as(leaving)('GET', '/workspace')).status, 401)
    t.equal((await api('GET', '/me', undefined, key)).status, 401)
  })

  t.test('the workspace is renamed by owners only', async (t) => {
    t.match((await as(contractor)('GET', '/workspace')).json.workspace, {
      ...{ name: 'Boxwood', zeroDataRetention: false, closingAt: null, purgeAfter: null },
    })
    t.match(await as(member)('PATCH', '/workspace', { name: 'Lab' }), { status: 403 })
    for (const name of ['', ' ', 'a'.repeat(65), 'a\nb'])
      t.equal((await as(owner)('PATCH', '/workspace', { name })).status, 400)
    t.equal((await as(owner)('PATCH', '/workspace', {})).status, 400)
    t.match((await as(owner)('PATCH', '/workspace', { name: ' Lab ' })).json, { workspace: { name: 'Lab' } })
    t.match((await api('GET', '/me')).json, { workspace: { name: 'Lab' } })
    t.match(await audited('workspace.update'), [{ name: 'Lab', previousName: 'Boxwood' }])
  })

  t.test('workspaces are created by owners of the first one, and it cannot be closed', async (t) => {
    const { db } = instance.context
    t.match(await as(member)('POST', '/workspaces', { name: 'Two' }), {
      status: 403,
      json: { error: 'not_owner' },
    })
    t.match(await as(owner)('POST', '/workspaces', { name: 'Two' }), {
      status: 400,
      json: { message: /no email address/ },
    })
    const email = 'root@example.com'
    await db.updateTable('users').set({ email }).where('id', '=', owner.userId).execute()
    const created = await as(owner)('POST', '/workspaces', { name: 'Two' })
    t.equal(created.status, 201)
    const { id } = created.json.workspace
    const users = await db.selectFrom('users').selectAll().where('workspace_id', '=', id).execute()
    t.match(users, [{ email, role: 'owner', removed_at: null }])
    t.match(await as(owner)('POST', '/workspace/close', { name: 'Lab' }), {
      status: 403,
      json: { error: 'not_allowed' },
    })
  })
})
