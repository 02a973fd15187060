// Agent accounts: a key that works after its emailed code is confirmed, and sign-up of people.
import t from 'tap'
import { waitUntil } from '../../../support/wait-until.ts'
import { createTestClock } from '../../../support/workspace.ts'
import { DAY_MS, startSignInCoordinator, WRONG_CODE } from '../sessions/support.ts'

const NO_KEY = { key: null }
const OPEN = { env: { BOXWOOD_SIGNUP: 'open', BOXWOOD_BILLING: 'manual' } }

t.test('sign-up is closed by default', async (t) => {
  const { api, requestCode, printed, finishTasks } = await startSignInCoordinator(t)
  t.match(await api('POST', '/agent-accounts', { email: 'bot@example.com' }, NO_KEY), {
    status: 403,
    json: { error: 'not_allowed' },
  })
  t.match(await requestCode('bot@example.com'), { status: 202 })
  await finishTasks()
  t.same(printed, [])
})

t.test('with open sign-up', async (t) => {
  const clock = createTestClock()
  const { api, edge, printed, signIn, confirm, readAudit, finishTasks, readPrintedCode, db, instance } =
    await startSignInCoordinator(t, {
      ...OPEN,
      clock,
    })
  const create = (body: object) => api('POST', '/agent-accounts', body, NO_KEY)
  const verify = (id: string, code: string) => api('POST', '/agent-accounts/verify', { id, code }, NO_KEY)
  const requestCode = (keyId: string) => api('POST', '/agent-accounts/code', { keyId }, NO_KEY)

  await t.test('an agent gets a key, which works when the code is confirmed', async (t) => {
    const created = await create({ email: 'Bot@example.com', name: 'Build bot' })
    t.match(created, {
      status: 201,
      json: { key: { name: 'Build bot', kind: 'api' }, workspace: { name: 'Build bot' } },
    })
    const { secret: key, codeId, workspace } = created.json
    const code = await readPrintedCode()
    t.match(printed.at(-1), /^Boxwood verification code for a new account for bot@example\.com: /)

    const unverified = { status: 403, json: { error: 'verification_required' } }
    for (const [method, path] of [
      ['GET', '/boxes'],
      ['POST', '/boxes'],
      ['GET', '/session'],
      ['GET', '/keys'],
      ['GET', '/no-such-route'],
    ] as const)
      t.match(await api(method, path, method === 'POST' ? {} : undefined, { key }), unverified, path)
    t.match(await edge('fig', 'POST', '/exec', { command: 'id' }, { key }), {
      status: 403,
      json: { ok: false, error: { code: 'verification_required' } },
    })
    t.match(await edge('fig', 'GET', '/no-such-route', undefined, { key }), { status: 403 })
    t.match(await api('GET', '/me', undefined, { key }), {
      status: 200,
      json: { customer: { status: 'unverified' }, workspace: { id: workspace.id }, user: { email: null } },
    })

    t.match(await verify(codeId, WRONG_CODE), { status: 400, json: { error: 'invalid_code' } })
    t.match(await confirm(codeId, code), { status: 400 }, 'the code does not sign in')
    t.match(await verify(codeId, code), { status: 200, json: { verified: true } })
    t.match(await verify(codeId, code), { status: 400 })
    t.match(await api('GET', '/boxes', undefined, { key }), { status: 200 })
    t.match(await api('GET', '/me', undefined, { key }), {
      json: { customer: { status: 'active' }, user: { email: 'bot@example.com', role: 'owner' } },
    })
    t.match(await signIn('bot@example.com'), { status: 200, json: { workspace: { id: workspace.id } } })
    const events = await readAudit('workspace.create', 'key.create', 'key.verify')
    t.same(
      events.filter(({ workspace_id }) => workspace_id === workspace.id).map(({ kind }) => kind),
      ['workspace.create', 'key.create', 'key.verify'],
    )
  })

  await t.test('an account of a stranger does not appear at the sign-in of its email address', async (t) => {
    await signIn('ann@example.com')
    await create({ email: 'ann@example.com', name: 'Phishing' })
    const signedIn = await signIn('ann@example.com')
    t.match(signedIn.json, { workspace: { name: 'ann' } })
    const users = await db.selectFrom('users').select('id').where('email', '=', 'ann@example.com').execute()
    t.equal(users.length, 1)
  })

  await t.test('another code can be requested', async (t) => {
    const { json } = await create({ email: 'dan@example.com' })
    await finishTasks()
    const count = printed.length
    const response = await requestCode(json.key.id)
    t.equal(response.status, 202)
    const code = await readPrintedCode()
    t.match(await verify(response.json.codeId, code), { status: 200 })
    const shape = ({ status, text }: typeof response) => [status, text.replace(/sic_\w+|\d{4}-[^"]+/g, '…')]
    t.same(shape(await requestCode(json.key.id)), shape(response), 'a verified key')
    t.same(shape(await requestCode('key_unknown')), shape(response), 'an unknown key')
    await finishTasks()
    t.equal(printed.length, count + 1)
  })

  await t.test('a person without a workspace gets one at the sign-in', async (t) => {
    const { json, status } = await signIn('new@example.com')
    t.equal(status, 200)
    t.match(json, { user: { email: 'new@example.com', role: 'owner' }, workspace: { name: 'new' } })
    t.match((await signIn('new@example.com')).json, { workspace: { id: json.workspace.id } })
  })

  await t.test('an account that is not verified in a week is deleted', async (t) => {
    const { json } = await create({ email: 'gone@example.com' })
    const { json: me } = await api('GET', '/me', undefined, { key: json.secret })
    t.equal(me.workspace.id, json.workspace.id)
    const prune = () => instance.context.agentAccounts.prune(new AbortController().signal)
    await prune()
    t.match(await api('GET', '/me', undefined, { key: json.secret }), { status: 200 })
    clock.advance(7 * DAY_MS)
    await prune()
    t.match(await api('GET', '/me', undefined, { key: json.secret }), { status: 401 })
    // The timer waits for a time before the clock was advanced.
    instance.context.scheduler.runDue()
    const query = db.selectFrom('workspaces').select('id').where('id', '=', json.workspace.id)
    await waitUntil('the workspace is deleted', async () => (await query.execute()).length === 0 || undefined)
    t.match(await signIn('bot@example.com'), { status: 200 }, 'verified accounts stay')
  })
})
