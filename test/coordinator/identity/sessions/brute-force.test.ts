// The limits that stop guessing: attempts per code, codes and attempts per email address, requests per client address.
import t from 'tap'
import { createTestClock } from '../../../support/workspace.ts'
import { DAY_MS, MINUTE_MS, startSignInCoordinator, WRONG_CODE } from './support.ts'

const HOUR_MS = 60 * MINUTE_MS
const LIMITED = { status: 429, json: { error: 'rate_limited' } }

t.test('guessing a code is stopped', async (t) => {
  const clock = createTestClock()
  const first = await startSignInCoordinator(t, { clock })
  const { addMember, getCode, requestCode, confirm, signIn } = first
  for (const name of ['ann', 'bob', 'cal', 'dan']) await addMember(`${name}@example.com`)

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

  await t.test('an email address gets 5 codes in an hour', async (t) => {
    const responses = await Promise.all(Array.from({ length: 8 }, () => requestCode('cal@example.com')))
    t.same(responses.map(({ status }) => status).sort(), [202, 202, 202, 202, 202, 429, 429, 429])
    const limited = await requestCode('cal@example.com')
    t.match(limited, LIMITED)
    t.equal(limited.headers.get('retry-after'), '3600')
    const unknown = await Promise.all(Array.from({ length: 6 }, () => requestCode('unknown@example.com')))
    t.same(unknown.map(({ status }) => status).sort(), [202, 202, 202, 202, 202, 429])
    clock.advance(HOUR_MS)
    t.match(await requestCode('cal@example.com'), { status: 202 })
  })

  await t.test(
    'after 10 wrong attempts, all codes of the email address are refused for an hour',
    async (t) => {
      const codes = [await getCode('dan@example.com'), await getCode('dan@example.com')]
      const last = await getCode('dan@example.com')
      for (const { id } of codes) for (let i = 0; i < 5; i += 1) await confirm(id, WRONG_CODE)
      t.match(await confirm(last.id, last.code), LIMITED)
      t.match(await requestCode('dan@example.com'), LIMITED)

      await first.close()
      const second = await startSignInCoordinator(t, { clock, dataDir: first.dataDir, infra: first.infra })
      t.match(await second.confirm(last.id, last.code), LIMITED, 'also after a restart')
      clock.advance(HOUR_MS)
      t.match(await second.signIn('dan@example.com'), { status: 200 })
      await second.close()
    },
  )
})

t.test('requests of a client address are limited', async (t) => {
  const { requestCode, confirm, api, instance } = await startSignInCoordinator(t, {
    addressLimitFactor: 1,
    env: { BOXWOOD_SIGNUP: 'open', BOXWOOD_TRUSTED_PROXIES: '127.0.0.1' },
  })
  const from = (address: string) => ({ key: null, headers: { 'x-forwarded-for': address } })
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
  const right = { secret: instance.context.sessions.signIn.ownerSecret }
  t.match(await api('POST', '/sign-in/owner', right, from('203.0.113.1')), LIMITED)
  t.match(await api('POST', '/sign-in/owner', right, from('not an address')), { status: 200 })
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
