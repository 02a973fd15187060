// The limits that stop guessing: attempts per code, codes per client and email address, requests per client address. They do
// not keep others from signing in.
import t from 'tap'
import { createTestClock } from '../../../support/workspace.ts'
import { DAY_MS, MINUTE_MS, startSignInCoordinator, WRONG_CODE } from './support.ts'

const HOUR_MS = 60 * MINUTE_MS
const LIMITED = { status: 429, json: { error: 'rate_limited' } }

t.test('guessing a code is stopped', async (t) => {
  const clock = createTestClock()
  const first = await startSignInCoordinator(t, { clock })
  const { addMember, getCode, confirm, signIn } = first
  for (const name of ['ann', 'bob']) await addMember(`${name}@example.com`)

  await t.test('after 5 wrong attempts the right code is rejected too', async (t) => {
    const { id, code } = await getCode('ann@example.com')
    for (let i = 0; i < 5; i += 1) t.match(await confirm(id, WRONG_CODE), { status: 400 })
    t.match(await confirm(id, code), { status: 400, json: { error: 'invalid_code' } })
    t.equal((await signIn('ann@example.com')).status, 200, 'a new code works')
  })

  await t.test('attempts at the same time count one by one', async (t) => {
    const { id, code } = await getCode('bob@example.com')
    await Promise.all(Array.from({ length: 8 }, () => confirm(id, WRONG_CODE)))
    t.match(await confirm(id, code), { status: 400 })
  })
  await first.close()
})

const from = (address: string) => ({ key: null, headers: { 'x-forwarded-for': address } })
const BEHIND_PROXY = { BOXWOOD_SIGNUP: 'open', BOXWOOD_TRUSTED_PROXIES: '127.0.0.1' }

t.test('clients that request codes or enter wrong ones do not keep a member out', async (t) => {
  const clock = createTestClock()
  const coordinator = await startSignInCoordinator(t, { clock, addressLimitFactor: 1, env: BEHIND_PROXY })
  const { addMember, requestCode, readPrintedCode, confirm } = coordinator
  for (const name of ['ann', 'bob', 'cal', 'dan']) await addMember(`${name}@example.com`)
  const getCode = async (email: string, address: string) => {
    const { status, json } = await requestCode(email, from(address))
    t.equal(status, 202)
    return { id: json.id, code: await readPrintedCode() }
  }
  const signIn = async (email: string, address: string) => {
    const { id, code } = await getCode(email, address)
    return confirm(id, code, from(address))
  }

  await t.test('a client gets 5 codes for an email address, then one every 5 minutes', async (t) => {
    const last = await getCode('ann@example.com', '203.0.113.1')
    for (let i = 1; i < 5; i += 1)
      t.match(await requestCode('ann@example.com', from('203.0.113.1')), { status: 202 })
    const limited = await requestCode('ann@example.com', from('203.0.113.1'))
    t.match(limited, LIMITED)
    t.equal(limited.headers.get('retry-after'), '300')
    t.match(await requestCode('unknown@example.com', from('203.0.113.1')), { status: 202 })
    t.match(
      await confirm(last.id, last.code, from('203.0.113.1')),
      { status: 200 },
      'a code is redeemed meanwhile',
    )
    t.match(await signIn('ann@example.com', '203.0.113.2'), { status: 200 }, 'another client gets a code')
    clock.advance(5 * MINUTE_MS)
    t.match(await requestCode('ann@example.com', from('203.0.113.1')), { status: 202 })
  })

  await t.test('wrong codes do not affect other codes of the email address', async (t) => {
    const mine = await getCode('bob@example.com', '203.0.113.2')
    for (let i = 0; i < 4; i += 1) {
      const { id } = await getCode('bob@example.com', '203.0.113.3')
      for (let j = 0; j < 6; j += 1)
        t.match(await confirm(id, WRONG_CODE, from('203.0.113.3')), { status: 400 })
    }
    t.match(await confirm(mine.id, mine.code, from('203.0.113.2')), { status: 200 })
  })

  await t.test(
    'an email address gets 30 codes in an hour, and more for a client with a session',
    async (t) => {
      t.match(await signIn('cal@example.com', '203.0.113.2'), { status: 200 })
      const statuses = []
      for (let i = 0; i < 40; i += 1)
        statuses.push((await requestCode('cal@example.com', from(`198.51.100.${i}`))).status)
      t.equal(statuses.filter((status) => status === 202).length, 29)
      t.equal(statuses.at(-1), 429)
      t.match(await signIn('cal@example.com', '203.0.113.2'), { status: 200 })
      clock.advance(HOUR_MS)
      t.match(await requestCode('cal@example.com', from('198.51.100.1')), { status: 202 })
    },
  )

  await t.test('a client with a session gets codes while its address sends many requests', async (t) => {
    t.match(await signIn('dan@example.com', '203.0.113.4'), { status: 200 })
    const statuses = []
    for (let i = 0; i < 30; i += 1)
      statuses.push((await requestCode(`user${i}@example.com`, from('203.0.113.4'))).status)
    t.equal(statuses.at(-1), 429)
    for (let i = 0; i < 100; i += 1) await confirm('sic_0', WRONG_CODE, from('203.0.113.4'))
    t.match(await signIn('dan@example.com', '203.0.113.4'), { status: 200 })
  })
  await coordinator.close()
})

t.test('requests of a client address are limited', async (t) => {
  const { requestCode, confirm, api, instance } = await startSignInCoordinator(t, {
    clock: createTestClock(),
    addressLimitFactor: 1,
    env: BEHIND_PROXY,
  })
  const sendMany = async (count: number, send: (i: number) => Promise<{ status: number }>) => {
    const statuses = []
    for (let i = 0; i < count; i += 1) statuses.push((await send(i)).status)
    return statuses.filter((status) => status === 429).length
  }
  const request = (i: number, address: string) => requestCode(`user${i}@example.com`, from(address))
  t.equal(await sendMany(21, (i) => request(i, '203.0.113.1')), 1)
  t.equal(await sendMany(1, (i) => request(30 + i, '203.0.113.2')), 0, 'other addresses are not affected')
  t.equal(await sendMany(21, (i) => request(40 + i, `2001:db8::${i + 1}`)), 1, 'a /64 network counts as one')
  t.equal(await sendMany(61, () => confirm('sic_0', WRONG_CODE, from('203.0.113.1'))), 1)
  const secret = { secret: 'bwo_wrong' }
  t.equal(await sendMany(61, () => api('POST', '/sign-in/owner', secret, from('203.0.113.1'))), 1)
  const right = { secret: await instance.context.sessions.ownerSecret.read() }
  t.match(await api('POST', '/sign-in/owner', right, from('203.0.113.1')), { status: 200 })
  t.match(await api('POST', '/sign-in/owner', secret, from('not an address')), { status: 401 })
})

t.test('only trusted proxies set the address of the client', async (t) => {
  const { addMember, signIn } = await startSignInCoordinator(t)
  await addMember('ann@example.com')
  const response = await signIn('ann@example.com', {
    key: null,
    headers: { 'x-forwarded-for': '203.0.113.1' },
  })
  t.match(response.json, { session: { address: '127.0.0.1' } })
})

t.test('expired sessions and codes are deleted', async (t) => {
  const clock = createTestClock()
  const { addMember, signIn, requestCode, db, instance } = await startSignInCoordinator(t, { clock })
  await addMember('ann@example.com')
  await signIn('ann@example.com')
  clock.advance(DAY_MS)
  await requestCode('ann@example.com')
  const prune = () => instance.context.sessions.prune(new AbortController().signal)
  const count = async () => [
    (await db.selectFrom('sign_in_codes').select('id').execute()).length,
    (await db.selectFrom('sessions').select('id').execute()).length,
  ]
  await prune()
  t.same(await count(), [1, 1])
  clock.advance(13 * DAY_MS)
  await prune()
  t.same(await count(), [0, 0])
})
