// Sessions: restart, expiry, list, end, several workspaces, requests of other origins, the owner's sign-in.
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { bySessionOf, readSetCookie } from '../../../support/cookies.ts'
import { createTestClock } from '../../../support/workspace.ts'
import { DAY_MS, MINUTE_MS, startSignInCoordinator } from './support.ts'

const FOREIGN_ORIGINS = [
  { origin: 'https://evil.example' },
  { origin: 'null' },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
]

t.test('the session of a member', async (t) => {
  const clock = createTestClock()
  const { addMember, addWorkspace, signIn, api, readAudit, db, finishTasks } = await startSignInCoordinator(
    t,
    {
      clock,
    },
  )
  const ann = await addMember('ann@example.com')
  await addMember('bob@example.com')
  const get = (path: string, options: Parameters<typeof api>[3]) => api('GET', path, undefined, options)

  await t.test('is shown and ended by sign-out', async (t) => {
    const session = bySessionOf(await signIn('ann@example.com'))
    const shown = await get('/session', session)
    t.match(Object.fromEntries(shown.headers), {
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    })
    t.match(shown, {
      status: 200,
      json: {
        session: { isCurrent: true },
        user: { id: ann.id, name: 'Ann' },
        workspaces: [{ id: ann.workspace_id, name: 'Boxwood', role: 'member' }],
      },
    })
    const response = await api('DELETE', '/session', undefined, session)
    t.equal(response.status, 204)
    t.match(readSetCookie(response), { value: '', maxAge: 0, path: '/', secure: true })
    const json = { message: /needs a dashboard session.*Sign in/ }
    t.match(await get('/session', session), { status: 401, json })
    t.match((await readAudit('session.sign_out')).at(-1), { actor_user_id: ann.id })
  })

  await t.test('can end the other sessions of the user, but not those of others', async (t) => {
    const first = bySessionOf(await signIn('ann@example.com'))
    clock.advance(MINUTE_MS)
    const second = bySessionOf(await signIn('ann@example.com'))
    const bob = bySessionOf(await signIn('bob@example.com'))
    const { sessions } = (await get('/sessions', second)).json
    t.match(sessions, [{ isCurrent: true }, { isCurrent: false }])
    const end = (id: string, options: typeof bob) => api('DELETE', `/sessions/${id}`, undefined, options)
    t.match(await end(sessions[1].id, bob), { status: 404 })
    t.match(await end(sessions[1].id, second), { status: 204 })
    t.match(await get('/session', first), { status: 401 })
    t.match(await end(sessions[1].id, second), { status: 204 }, 'as the first time')
    t.match(await end('ses_unknown', second), { status: 404 })
    t.match(await end('x', second), { status: 404 })
  })

  await t.test('moves its expiry with use, with one write in an hour, up to 90 days', async (t) => {
    const session = bySessionOf(await signIn('ann@example.com'))
    const { id, createdAt } = (await get('/session', session)).json.session
    const read = () => db.selectFrom('sessions').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
    const start = Date.parse(createdAt)
    const expected = (now: number) => Math.min(now + 14 * DAY_MS, start + 90 * DAY_MS)
    t.match(await read(), { last_used_at: start, expires_at: expected(start) })
    clock.advance(59 * MINUTE_MS)
    await get('/session', session)
    await finishTasks()
    t.match(await read(), { last_used_at: start })
    clock.advance(MINUTE_MS)
    await Promise.all([get('/session', session), get('/me', session)])
    await finishTasks()
    t.match(await read(), { last_used_at: clock.now(), expires_at: expected(clock.now()) })
    for (let day = 13; day < 90; day += 13) {
      clock.advance(13 * DAY_MS)
      await get('/session', session)
      await finishTasks()
    }
    t.match(await read(), { expires_at: start + 90 * DAY_MS })
    clock.advance(start + 90 * DAY_MS - clock.now())
    t.match(await get('/session', session), { status: 401, json: { error: 'unauthorized' } })
  })

  await t.test('expires after 14 days without use', async (t) => {
    const session = bySessionOf(await signIn('ann@example.com'))
    clock.advance(14 * DAY_MS)
    t.match(await get('/me', session), { status: 401 })
  })

  await t.test('switches to another workspace of the same person', async (t) => {
    const other = await addWorkspace('Other')
    const foreign = await addWorkspace('Foreign')
    const annElsewhere = await addMember('ann@example.com', { workspace_id: other, role: 'owner' })
    await addMember('bob@example.com', { workspace_id: foreign })
    const signedIn = await signIn('ann@example.com')
    t.match(signedIn.json, { workspace: { id: ann.workspace_id } }, 'the workspace that was used last')
    const before = bySessionOf(signedIn)
    t.match((await get('/session', before)).json.workspaces, [
      { name: 'Boxwood', role: 'member' },
      { id: other, name: 'Other', role: 'owner' },
    ])
    const move = (workspaceId: string, options: typeof before) =>
      api('POST', '/session/workspace', { workspaceId }, options)
    t.match(await move(foreign, before), { status: 404 })
    t.match(await move('ws_unknown', before), { status: 404 })
    clock.advance(MINUTE_MS)
    const moved = await move(other, before)
    t.match(moved, { status: 200, json: { user: { id: annElsewhere.id }, workspace: { name: 'Other' } } })
    t.equal(moved.json.session.createdAt, signedIn.json.session.createdAt, 'the 90 days do not start again')
    t.match(await get('/me', before), { status: 401 }, 'the earlier cookie is not valid any more')
    t.match(await get('/me', bySessionOf(moved)), { json: { workspace: { id: other } } })
    t.match((await signIn('ann@example.com')).json, { workspace: { id: other } })
    const events = await readAudit('session.switch')
    const ofOther = events.filter(({ workspace_id }) => workspace_id === other)
    t.match(ofOther, [{ actor_user_id: annElsewhere.id }])
    t.notMatch(JSON.stringify(ofOther), ann.workspace_id, 'the log does not name the other workspace')
    t.equal(events.length, 2)
  })

  await t.test('ends when the user is removed', async (t) => {
    const session = bySessionOf(await signIn('bob@example.com'))
    await db.updateTable('users').set({ removed_at: 1 }).where('email', '=', 'bob@example.com').execute()
    t.match(await get('/session', session), { status: 401 })
  })

  await t.test('a user has at most 50 sessions', async (t) => {
    const dan = await addMember('dan@example.com')
    const template = await db.selectFrom('sessions').selectAll().limit(1).executeTakeFirstOrThrow()
    for (let i = 0; i < 50; i += 1)
      await db
        .insertInto('sessions')
        .values({ ...template, id: `ses_${i}`, hash: `${i}`, user_id: dan.id, last_used_at: i })
        .execute()
    await signIn('dan@example.com')
    const ids = await db.selectFrom('sessions').select('id').where('user_id', '=', dan.id).execute()
    t.equal(ids.length, 50)
    t.notOk(ids.some(({ id }) => id === 'ses_0'))
    t.match((await readAudit('session.sign_out')).at(-1), {
      actor_kind: 'system',
      detail: { sessionId: 'ses_0', userId: dan.id },
    })
  })
})

t.test('the owner', async (t) => {
  const first = await startSignInCoordinator(t)
  const { api, dataDir, signIn, requestCode, printed, readPrintedCode, addMember, addWorkspace } = first
  const readSecret = () => readFileSync(join(dataDir, 'sign-in.key'), 'utf8')
  const signInOwner = (secret: string, send = api) =>
    send('POST', '/sign-in/owner', { secret }, { key: null })
  const secret = readSecret()

  t.equal(statSync(join(dataDir, 'sign-in.key')).mode & 0o777, 0o600)
  t.match(await signInOwner(first.key), {
    status: 401,
    json: { error: 'unauthorized', message: /^This is an API key, .* sign-in\.key/ },
  })
  const response = await signInOwner(secret)
  t.match(response, { status: 200, json: { user: { role: 'owner', email: null } } })
  const owner = bySessionOf(response)
  const sendAsOwner = (method: string, path: string, body?: unknown) => api(method, path, body, owner)
  t.match(await sendAsOwner('GET', '/session'), {
    json: { workspaces: [{ name: 'Boxwood', role: 'owner' }] },
  })

  await t.test('sets a name and a confirmed email address, and signs in with it', async (t) => {
    t.match(await sendAsOwner('PATCH', '/session/user', { name: ' Olga ' }), {
      status: 200,
      json: { user: { name: 'Olga', email: null } },
    })
    const { json, status } = await sendAsOwner('POST', '/session/email', { email: 'Olga@example.com' })
    t.equal(status, 202)
    const confirm = (id: string, code: string) => sendAsOwner('POST', '/session/email/confirm', { id, code })
    t.match(await confirm(json.id, 'AAAA-AAAA'), { status: 400, json: { error: 'invalid_code' } })
    const code = await readPrintedCode()
    t.match(await first.confirm(json.id, code), { status: 400 }, 'the code does not sign in')
    t.match(await confirm(json.id, code), { status: 200, json: { user: { email: 'olga@example.com' } } })
    t.match(await signIn('olga@example.com'), {
      status: 200,
      json: { user: { name: 'Olga', role: 'owner' } },
    })

    const { json: signInCode } = await requestCode('olga@example.com')
    const printedCode = await readPrintedCode()
    t.match(await confirm(signInCode.id, printedCode), { status: 400 }, 'a sign-in code changes no address')
  })

  await t.test('cannot take the email address of another member', async (t) => {
    await addMember('ann@example.com')
    await addMember('eva@example.com', { workspace_id: await addWorkspace('Other') })
    for (const [email, status] of [
      ['ann@example.com', 409],
      ['eva@example.com', 200],
    ] as const) {
      const { json } = await sendAsOwner('POST', '/session/email', { email })
      const code = await readPrintedCode()
      t.equal((await sendAsOwner('POST', '/session/email/confirm', { id: json.id, code })).status, status)
    }
    await first.finishTasks()
    t.match(printed.at(-1), /olga@example\.com.*address.*changed/, 'the earlier address gets a notification')
    const member = bySessionOf(await signIn('ann@example.com'))
    t.match(await api('POST', '/session/email', { email: 'x@example.com' }, member), {
      status: 403,
      json: { error: 'not_owner' },
    })
  })

  await t.test('keeps the session when the coordinator restarts, but the secret is new', async (t) => {
    const { json: link } = await api('POST', '/sign-in/owner/link', { secret }, { key: null })
    await first.close()
    t.throws(readSecret, { code: 'ENOENT' })
    const second = await startSignInCoordinator(t, { dataDir, infra: first.infra })
    t.match(await second.api('GET', '/session', undefined, owner), { status: 200 })
    t.match(await signInOwner(secret, second.api), { status: 401 })
    t.match(await signInOwner(link.secret, second.api), { status: 401 })
    t.match(await signInOwner(readSecret(), second.api), { status: 200 })
    await second.close()
  })
})

t.test('pages of other origins cannot use a session and cannot sign in', async (t) => {
  const { api, addMember, signIn, getCode, url } = await startSignInCoordinator(t)
  await addMember('ann@example.com')
  const { headers } = bySessionOf(await signIn('ann@example.com'))
  const { id, code } = await getCode('ann@example.com')
  const requests: [method: string, path: string, body?: unknown][] = [
    ['POST', '/sign-in', { email: 'ann@example.com' }],
    ['POST', '/sign-in/confirm', { id, code }],
    ['POST', '/sign-in/owner', { secret: 'x' }],
    ['POST', '/sign-in/owner/link', { secret: 'x' }],
    ['POST', '/agent-accounts', { email: 'ann@example.com' }],
    ['POST', '/agent-accounts/verify', { id, code }],
    ['POST', '/agent-accounts/code', { keyId: 'x' }],
    ['DELETE', '/session'],
    ['POST', '/session/workspace', { workspaceId: 'x' }],
    ['PATCH', '/session/user', { name: 'Eve' }],
    ['POST', '/session/email', { email: 'eve@example.com' }],
    ['POST', '/session/email/confirm', { id, code }],
    ['DELETE', '/sessions/ses_1'],
  ]
  for (const [method, path, body] of requests)
    for (const foreign of FOREIGN_ORIGINS) {
      const response = await api(method, path, body, { key: null, headers: { ...headers, ...foreign } })
      t.match(response, { status: 403, json: { error: 'not_allowed' } }, `${method} ${path}`)
      t.same(response.headers.getSetCookie(), [])
    }
  const own = { key: null, headers: { ...headers, origin: url, 'sec-fetch-site': 'same-origin' } }
  t.match(await api('POST', '/sign-in/confirm', { id, code }, own), { status: 200 })
})

t.test('API keys get 401 on the routes of sessions', async (t) => {
  const { api } = await startSignInCoordinator(t)
  for (const [method, path] of [
    ['GET', '/session'],
    ['GET', '/sessions'],
    ['DELETE', '/session'],
    ['PATCH', '/session/user'],
  ] as const)
    t.match(await api(method, path, method === 'PATCH' ? { name: 'x' } : undefined), {
      status: 401,
      json: { error: 'unauthorized' },
    })
})
