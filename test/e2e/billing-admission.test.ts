// Requests that the balance, the plan or a hold refuses, over HTTP: codes, fields, messages, and requests at once.
import t from 'tap'
import { type BilledCoordinator, startBilledCoordinator } from '../support/billing.ts'
import type { ApiResponse } from '../support/coordinator.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'

/** Micro-dollars per hour of billing/prices.ts. */
const NANO = 10_000
const NANO_DISK = 1370
const HOURS = 4

const createBox = (coordinator: BilledCoordinator, body: object = {}) =>
  coordinator.api('POST', '/boxes', { tier: 'nano', ...body })

async function createRunning(coordinator: BilledCoordinator, body: object = {}): Promise<string> {
  const { json } = await createBox(coordinator, body)
  await coordinator.waitForState(json.box.id, 'running')
  await waitUntilIdle(coordinator)
  return json.box.id
}

const waitUntilIdle = ({ instance }: BilledCoordinator) =>
  waitUntil('no box and no snapshot changes its state', async () => {
    const { db } = instance.context
    const jobs = await db.selectFrom('jobs').select('box_id').execute()
    const snapshotJobs = await db.selectFrom('snapshot_jobs').select('snapshot_id').execute()
    return jobs.length === 0 && snapshotJobs.length === 0
  })

const isRefused = ({ status }: ApiResponse) => status !== 202

t.test('100 creates at once on a balance for 10', async (t) => {
  const coordinator = await startBilledCoordinator(t)
  const balance = 10 * HOURS * NANO + 39_999
  await coordinator.setAccount(balance)
  const responses = await Promise.all(Array.from({ length: 100 }, () => createBox(coordinator)))
  const refused = responses.filter(isRefused)
  t.equal(refused.length, 90)
  for (const { status, json } of refused)
    t.same(
      [status, json],
      [
        409,
        {
          error: 'insufficient_balance',
          message: `The balance must last for 4 hours with all boxes: it is $0.44, and $0.44 are required. Suspend or delete boxes, choose a smaller tier, or let the operator add credit with \`boxwood credit\`.`,
          balanceMicros: balance,
          requiredMicros: 11 * HOURS * NANO,
          burnMicrosPerHour: 11 * NANO,
          admissionMicrosPerHour: 11 * NANO,
        },
      ],
    )
  const { json } = await coordinator.api('GET', '/boxes?live=1')
  t.equal(json.boxes.length, 10)
  await coordinator.setAccount(balance + 1)
  t.equal((await createBox(coordinator)).status, 202, 'one more micro-dollar')
})

t.test('20 wakes at once on a balance for 5, and a create with a resize', async (t) => {
  const coordinator = await startBilledCoordinator(t)
  await coordinator.setAccount(100_000_000)
  const created = await Promise.all(Array.from({ length: 20 }, () => createBox(coordinator)))
  const ids: string[] = created.map(({ json }) => json.box.id)
  for (const id of ids) await coordinator.waitForState(id, 'running')
  for (const id of ids) await coordinator.api('POST', `/boxes/${id}/suspend`)
  for (const id of ids) await coordinator.waitForState(id, 'suspended')
  await waitUntilIdle(coordinator)
  const burn = 20 * NANO_DISK
  await coordinator.setAccount(HOURS * (burn + 5 * (NANO - NANO_DISK)))
  const wake = (id: string) => coordinator.api('POST', `/boxes/${id}/wake`)
  const responses = await Promise.all(ids.map(wake))
  const refused = responses.filter(isRefused)
  t.equal(refused.length, 15)
  const reason = 'The balance must last for 4 hours with all boxes: it is $0.28, and $0.32 are required.'
  for (const { status, json } of refused)
    t.same(
      [status, json],
      [
        409,
        {
          error: 'wake_rejected',
          message: `${reason} Suspend or delete other boxes, or let the operator add credit with \`boxwood credit\`.`,
          reason,
          cause: 'balance_low',
        },
      ],
    )
  await coordinator.setAccount(0)
  const asleep = ids[responses.findIndex(isRefused)] ?? ''
  t.match((await wake(asleep)).json, { error: 'wake_rejected', cause: 'balance_empty' })
  const awake = ids[responses.findIndex((response) => !isRefused(response))] ?? ''
  t.equal((await wake(awake)).status, 202, 'a box that runs already')

  await coordinator.waitForState(awake, 'running')
  await waitUntilIdle(coordinator)
  const { json: me } = await coordinator.api('GET', '/me')
  await coordinator.setAccount(HOURS * (me.billing.burnMicrosPerHour + NANO))
  const both = await Promise.all([
    createBox(coordinator),
    coordinator.api('POST', `/boxes/${awake}/resize`, { target_tier: 'micro' }),
  ])
  t.same(both.map(({ status }) => status).sort(), [202, 409], 'one of two that cost the same')
  t.match(both.find(isRefused)?.json, { error: 'insufficient_balance' })
  t.equal(
    (await coordinator.api('POST', `/boxes/${awake}/suspend`)).status,
    202,
    'a box can be suspended on any balance',
  )
})

t.test('free credit alone', async (t) => {
  const coordinator = await startBilledCoordinator(t)
  const { api } = coordinator
  await coordinator.setAccount(4_000_000, { paid_at: null })
  const allowed = ['nano', 'micro', 'lite', 'flow']
  const tooLarge = { error: 'tier_unavailable', allowed, message: /nano, micro, lite, flow.*add credit/ }
  t.match((await createBox(coordinator, { tier: 'pro' })).json, tooLarge)
  const { json: created } = await api('POST', '/boxes', {})
  t.match(created.box, { tier: 'micro', autoPauseMin: 120 }, 'a small size, which pauses')
  const { id } = created.box
  await coordinator.waitForState(id, 'running')
  await waitUntilIdle(coordinator)

  const full = {
    error: 'box_limit',
    limit: 1,
    message:
      'Free credit alone runs 1 box. Delete a box, or let the operator add credit with `boxwood credit`.',
  }
  const { json: taken } = await api('POST', '/snapshots', { boxId: id, name: 'first' })
  await waitUntilIdle(coordinator)
  const restore = `/snapshots/${taken.snapshot.id}/restore`
  const session = await createTestSession(coordinator)
  for (const [path, body, options] of [
    ['/boxes', {}],
    [`/boxes/${id}/fork`, {}],
    [restore, {}],
    ['/machines', {}, session],
  ] as const) {
    const { status, json } = await api('POST', path, body, options)
    t.equal(status, 409, path)
    t.match(json, full)
  }
  t.match((await api('POST', `/boxes/${id}/resize`, { target_tier: 'max' })).json, tooLarge)
  t.match((await api('POST', `/boxes/${id}/port-shares`, { port: 3000, access: 'anyone' })).json, {
    error: 'share_links_need_payment',
    message: String,
  })
  t.equal((await api('POST', `/boxes/${id}/port-shares`, { port: 3000 })).status, 201, 'for members')

  for (let count = 1; count < 5; count++)
    t.equal((await api('POST', '/snapshots', { boxId: id, name: `copy-${count}` })).status, 201)
  const sixth = await api('POST', '/snapshots', { boxId: id, name: 'sixth' })
  t.match([sixth.status, sixth.json], [429, { error: 'snapshot_limit', limit: 5 }])
  for (let count = 0; count < 10; count++)
    t.equal((await api('POST', '/secrets', { name: `SECRET_${count}`, value: 'x' }, session)).status, 201)
  const secret = await api('POST', '/secrets', { name: 'SECRET_10', value: 'x' }, session)
  t.match([secret.status, secret.json.error], [402, 'secret_limit'])

  await api('DELETE', `/boxes/${id}`)
  await coordinator.waitForState(id, 'terminated')
  const { status, json } = await api('POST', restore, { tier: 'pro' })
  t.match([status, json], [403, { error: 'restore_tier_not_allowed', message: /nano, micro, lite, flow/ }])
  t.match(
    (await createBox(coordinator, { autoPauseMin: null })).json.box,
    { autoPauseMin: null },
    'null is kept',
  )
})

t.test('forks, restores and resizes that the balance refuses', async (t) => {
  const coordinator = await startBilledCoordinator(t)
  const { api } = coordinator
  await coordinator.setAccount(1_000_000)
  const id = await createRunning(coordinator)
  const { json: taken } = await api('POST', '/snapshots', { boxId: id, name: 'first' })
  await waitUntilIdle(coordinator)
  const snapshotBurn = (await api('GET', '/me')).json.billing.burnMicrosPerHour - NANO
  const burn = 2 * NANO + snapshotBurn
  await coordinator.setAccount(HOURS * burn - 1)
  for (const [path, body] of [
    [`/boxes/${id}/fork`, {}],
    [`/snapshots/${taken.snapshot.id}/restore`, {}],
    ['/boxes', { fromSnapshotId: taken.snapshot.id }],
    [`/boxes/${id}/resize`, { target_tier: 'micro' }],
  ] as const) {
    const { status, json } = await api('POST', path, body)
    t.equal(status, 409, path)
    t.match(json, {
      error: 'insufficient_balance',
      message: /^The balance must last for 4 hours/,
      balanceMicros: HOURS * burn - 1,
      requiredMicros: HOURS * burn,
      burnMicrosPerHour: burn,
      admissionMicrosPerHour: burn,
    })
  }
  const { json } = await api('POST', '/boxes', {})
  t.match(
    json,
    { error: 'insufficient_balance', requiredMicros: HOURS * burn },
    'the smallest tier is chosen',
  )
})

t.test('a tier that the balance runs comfortably', async (t) => {
  const coordinator = await startBilledCoordinator(t)
  const chosen = async () => (await coordinator.api('POST', '/boxes', {})).json.box.tier
  await coordinator.setAccount(24 * 40_000)
  t.equal(await chosen(), 'lite', 'for 24 hours')
  await coordinator.setAccount(24 * 60_000)
  t.equal(await chosen(), 'micro', 'with the other boxes')
  await coordinator.setAccount(24 * 70_000 - 1)
  t.equal(await chosen(), 'nano', 'for less than 24 hours too')
})

t.test('a held workspace', async (t) => {
  const coordinator = await startBilledCoordinator(t)
  const { api } = coordinator
  await coordinator.setAccount(10_000_000)
  const id = await createRunning(coordinator)
  const suspended = await createRunning(coordinator)
  await api('POST', `/boxes/${suspended}/suspend`)
  await coordinator.waitForState(suspended, 'suspended')
  const { json: taken } = await api('POST', '/snapshots', { boxId: id, name: 'first' })
  await waitUntilIdle(coordinator)
  const session = await createTestSession(coordinator)
  const requests = [
    ['/boxes', {}],
    ['/machines', {}, session],
    [`/boxes/${suspended}/wake`, undefined],
    [`/boxes/${id}/resize`, { target_tier: 'micro' }],
    [`/boxes/${id}/region`, { region: 'eu-central-1' }],
    [`/boxes/${id}/fork`, {}],
    [`/boxes/${id}/template`, { name: 'held' }],
    ['/snapshots', { boxId: id, name: 'held' }],
    [`/snapshots/${taken.snapshot.id}/restore`, {}],
    [`/boxes/${id}/port-shares`, { port: 3000 }],
  ] as const
  for (const [hold, message] of [
    ['mining', /mine cryptocurrency/],
    ['cpu', /all of their CPU/],
  ] as const) {
    await coordinator.setAccount(10_000_000, { hold })
    for (const [path, body, options] of requests) {
      const { status, json } = await api('POST', path, body, options)
      t.equal(status, 409, `${hold}: ${path}`)
      t.match(json, { error: 'workspace_held', message })
    }
  }
  const patched = await api('PATCH', `/boxes/${id}`, { autoPauseMin: 60 })
  t.equal(patched.status, 200, 'the settings of boxes can be changed')
  t.equal((await api('POST', `/boxes/${id}/suspend`)).status, 202)
  await coordinator.setAccount(10_000_000, { hold: null })
  t.equal((await createBox(coordinator)).status, 202)
})
