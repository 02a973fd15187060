// Sign-in with an emailed code: the mail, the cookie, and what a stranger can find out.
import t from 'tap'
import { bySessionOf, readSetCookie } from '../../../support/cookies.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { startSmtpServer } from '../mail/smtp-server.ts'
import { DAY_MS, MINUTE_MS, startSignInCoordinator, WRONG_CODE } from './support.ts'

t.test('a member signs in with the code of a mail', async (t) => {
  const smtp = await startSmtpServer(t)
  const { addMember, requestCode, confirm, api, printed, finishTasks, readAudit } =
    await startSignInCoordinator(t, {
      env: { BOXWOOD_SMTP_URL: smtp.url, BOXWOOD_MAIL_FROM: 'boxwood@example.com' },
    })
  const ann = await addMember('ann@example.com')

  const requested = await requestCode(' Ann@Example.com ')
  t.equal(requested.status, 202)
  t.equal((await requestCode('stranger@example.com')).status, 202)
  await waitUntil('the mail is sent', () => smtp.mails.length > 0)
  const [mail] = smtp.mails
  t.match(mail, { from: 'boxwood@example.com', to: ['ann@example.com'] })
  const code = /^([B-Z]{4}-[B-Z]{4})\r\n/m.exec(mail?.message ?? '')?.[1] ?? ''

  const wrong = await confirm(requested.json.id, WRONG_CODE)
  t.match(wrong, { status: 400, json: { error: 'invalid_code' } })
  const typed = ` ${code.toLowerCase().replace('-', ' ')}`
  const response = await confirm(requested.json.id, typed, {
    key: null,
    headers: { 'user-agent': 'Mozilla/5.0' },
  })
  t.match(response, {
    status: 200,
    json: {
      session: { userAgent: 'Mozilla/5.0', address: '127.0.0.1', isCurrent: true },
      user: { id: ann.id, email: 'ann@example.com', role: 'member' },
      workspace: { id: ann.workspace_id, name: 'Boxwood' },
    },
  })
  t.equal(response.headers.get('cache-control'), 'no-store')
  const { value, ...cookie } = readSetCookie(response)
  t.match(value, /^bws_[\w-]{43}$/)
  t.same(cookie, {
    name: '__Host-boxwood_session',
    httpOnly: true,
    secure: true,
    sameSite: 'lax',
    path: '/',
    maxAge: (90 * DAY_MS) / 1000,
  })

  const me = await api('GET', '/me', undefined, bySessionOf(response))
  t.match(me, { status: 200, json: { user: { email: 'ann@example.com' }, workspace: { name: 'Boxwood' } } })
  t.equal(me.json.key, undefined)
  t.match(await confirm(requested.json.id, code), { status: 400 }, 'a code can be used once')
  t.same(smtp.mails.length, 1, 'a stranger gets no mail')
  t.same(printed, [])
  await finishTasks()
  t.match(await readAudit('session.sign_in', 'sign_in.rejected'), [
    { kind: 'sign_in.rejected', actor_kind: 'system', detail: { userId: ann.id } },
    { kind: 'session.sign_in', actor_user_id: ann.id, detail: { method: 'code', address: '127.0.0.1' } },
  ])
})

t.test('without an SMTP server', async (t) => {
  const { addMember, requestCode, confirm, getCode, signIn, api, printed, db, finishTasks, readAudit } =
    await startSignInCoordinator(t)
  await addMember('ann@example.com')

  await t.test('the code is printed on stdout, and nowhere in the database', async (t) => {
    const { id, code } = await getCode('ann@example.com')
    t.match(printed.at(-1), /^Boxwood sign-in code for ann@example\.com: [B-Z]{4}-[B-Z]{4}$/)
    t.notMatch(JSON.stringify(await db.selectFrom('sign_in_codes').selectAll().execute()), code)
    const response = await confirm(id, code)
    t.equal(response.status, 200)
    const { value = '' } = readSetCookie(response)
    t.notMatch(JSON.stringify(await db.selectFrom('sessions').selectAll().execute()), value)
    t.notMatch(JSON.stringify(await db.selectFrom('audit_log').selectAll().execute()), code)
  })

  await t.test('an invited member has joined with the first sign-in', async (t) => {
    const { id } = await addMember('bob@example.com')
    const read = () => db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
    t.match(await read(), { joined_at: null })
    await signIn('bob@example.com')
    const { joined_at: joinedAt } = await read()
    t.type(joinedAt, 'number')
    await signIn('bob@example.com')
    t.match(await read(), { joined_at: joinedAt })
  })

  await t.test('the responses for an unknown email address are the same', async (t) => {
    await addMember('eve@example.com', { removed_at: 1 })
    await addMember('cal@example.com')
    const describe = async (email: string) => {
      const requested = await requestCode(email)
      const confirmed = await confirm(requested.json.id, WRONG_CODE)
      const shape = ({ status, headers, text }: typeof requested) => ({
        status,
        headers: [...headers].filter(([name]) => name !== 'date'),
        text: text.replace(/sic_\w+|\d{4}-\d\d-\d\dT[\d:.]+Z/g, '…'),
      })
      return [shape(requested), shape(confirmed)]
    }
    const known = await describe('cal@example.com')
    await finishTasks()
    const printedBefore = printed.length
    t.same(await describe('unknown@example.com'), known)
    t.same(await describe('eve@example.com'), known, 'a removed member is unknown')
    await finishTasks()
    t.equal(printed.length, printedBefore, 'strangers get no code')
    const users = new Set((await readAudit('sign_in.rejected')).map(({ detail }) => detail.userId))
    t.equal(users.size, 1, 'rejected sign-ins of strangers are not recorded')
  })

  await t.test('a session that came with the sign-in is ended', async (t) => {
    const planted = bySessionOf(await signIn('cal@example.com'))
    const response = await signIn('ann@example.com', planted)
    t.equal(response.status, 200)
    t.match(await api('GET', '/session', undefined, planted), { status: 401 })
    t.match(await api('GET', '/session', undefined, bySessionOf(response)), {
      status: 200,
      json: { user: { email: 'ann@example.com' } },
    })
  })

  await t.test('invalid requests are rejected', async (t) => {
    for (const email of ['', 'ann', 'a@b@c', 'ann@example.com\n', `${'a'.repeat(250)}@example.com`, null])
      t.match(await api('POST', '/sign-in', { email }, { key: null }), {
        status: email === 'ann@example.com\n' ? 202 : 400,
      })
    for (const body of [{}, { id: 'sic_0', code: 1 }, { id: 'sic_0', code: 'B'.repeat(33) }])
      t.match(await api('POST', '/sign-in/confirm', body, { key: null }), { json: { error: 'bad_request' } })
    t.match(await confirm('sic_000000000000000000000000', WRONG_CODE), { json: { error: 'invalid_code' } })
    t.match(await confirm('x', 'BCDF-GHJK'), { json: { error: 'invalid_code' } })
  })
})

t.test('a code expires after 15 minutes', async (t) => {
  let now = Date.now()
  const { addMember, getCode, confirm } = await startSignInCoordinator(t, { clock: { now: () => now } })
  await addMember('ann@example.com')
  const { id, code } = await getCode('ann@example.com')
  now += 15 * MINUTE_MS
  t.match(await confirm(id, code), { status: 400, json: { error: 'invalid_code' } })
})
