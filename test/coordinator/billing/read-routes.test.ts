// The routes that read billing, over HTTP: with billing on and off.
import t from 'tap'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { createUserKey } from '../../support/limited-key.ts'
import { createTestSession } from '../../support/session.ts'
import { waitUntil } from '../../support/wait-until.ts'

t.test('the routes', async (t) => {
  const coordinator = await startTestCoordinator(t, { env: { BOXWOOD_BILLING: 'manual' } })
  const { api, waitForState } = coordinator
  const session = await createTestSession(coordinator)
  const [{ id: box, hostname }] = (await api('GET', '/boxes')).json.boxes
  await waitForState(box, 'running')
  const readRows = async () => (await api('GET', '/usage')).json.rows
  await waitUntil('a second of usage', async () => (await readRows()).length > 0)
  t.match(await readRows(), [{ boxId: box, hostname }])
  t.match((await api('GET', '/usage?by=day&month=2029-01')).json, {
    by: 'day',
    month: '2029-01',
    totalMicros: 0,
    rows: [],
  })
  for (const query of ['by=hour', 'month=2030', 'month=2030-13', 'month=2030-01-01', 'month=30-01'])
    t.match(await api('GET', `/usage?${query}`), { status: 400, json: { error: 'bad_request' } }, query)
  const contractor = { key: await createUserKey(coordinator, 'contractor') }
  t.match((await api('GET', '/usage', undefined, contractor)).json, { totalMicros: 0, rows: [] })

  const { status, json } = await api('GET', '/billing', undefined, session)
  t.equal(status, 200)
  t.match(json, {
    provider: 'manual',
    hasCard: false,
    trial: true,
    freeCreditMicros: 5_000_000,
    burnMicrosPerHour: Number,
    plan: { name: 'free', boxes: 1, tiers: ['nano', 'micro', 'lite', 'flow'] },
    prices: { tiers: [{ tier: 'nano', runningMicrosPerHour: 10_000, diskMicrosPerHour: Number }] },
  })
  t.equal((await api('GET', '/billing')).status, 401, 'billing needs a session')
  const member = await createTestSession(coordinator, 'member')
  t.match((await api('GET', '/billing/entries', undefined, member)).json, { error: 'not_owner' })

  const { db } = coordinator.instance.context
  const { workspaceId = '' } = coordinator.instance.owner ?? {}
  const list = async (query = '') => (await api('GET', `/billing/entries${query}`, undefined, session)).json
  t.match(await list(), {
    entries: [{ id: 'free_credit', kind: 'free_credit', amountMicros: 5_000_000, boxId: null, since: null }],
    nextBefore: null,
  })
  const usage = {
    workspace_id: workspaceId,
    kind: 'usage' as const,
    debit: 'balance' as const,
    credit: 'usage' as const,
    amount_micros: 10_000,
    box_id: box,
    user_id: null,
    since: 1_900_000_000,
    until: 1_900_003_600,
    note: null,
    at: 1_900_003_600_000,
  }
  const causes = ['usage:a:1900000000', 'usage:b:1900000000']
  await db
    .insertInto('billing_entries')
    .values(causes.map((cause) => ({ ...usage, cause })))
    .execute()
  const ids: string[] = []
  let before: string | null = ''
  while (before !== null) {
    const page: { entries: { id: string; amountMicros: number }[]; nextBefore: string | null } = await list(
      `?limit=1${before === '' ? '' : `&before=${before}`}`,
    )
    ids.push(...page.entries.map(({ id, amountMicros }) => `${id} ${amountMicros}`))
    before = page.nextBefore
  }
  t.same(ids, [`${causes[1]} -10000`, `${causes[0]} -10000`, 'free_credit 5000000'])
  t.equal((await list('?before=wrong')).error, 'invalid_cursor')
})

t.test('with billing off there is nothing, and no query of its tables', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api } = coordinator
  const session = await createTestSession(coordinator)
  for (const by of ['box', 'member', 'day'])
    t.match((await api('GET', `/usage?by=${by}&month=2030-01`)).json, { by, totalMicros: 0, rows: [] })
  t.match((await api('GET', '/billing', undefined, session)).json, {
    provider: 'off',
    balanceMicros: 0,
    runwayHours: null,
    warnBelowHours: 0,
    freeCreditMicros: 0,
    plan: null,
    prices: null,
  })
  t.same((await api('GET', '/billing/entries', undefined, session)).json, { entries: [], nextBefore: null })
  t.same(await coordinator.instance.context.db.selectFrom('billing_accounts').selectAll().execute(), [])
})
