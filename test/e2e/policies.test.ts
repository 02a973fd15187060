// The policies that limit members, over HTTP: their refusals, and the defaults of new boxes.
import t from 'tap'
import type { PolicyRule } from '../../coordinator/admission/refusal.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type { PatchPolicyRequest } from '../../shared/api/policies.ts'
import { createBillingFacts } from '../support/billing-facts.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createUserKey } from '../support/limited-key.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { takeSnapshot } from './snapshots-support.ts'

t.test('policies of members', async (t) => {
  const clock = { now: () => Date.UTC(2030, 0, 15) }
  let spentThisCycleMicros = 0
  const coordinator = await startTestCoordinator(t, {
    clock,
    loadBilling: async () => createBillingFacts({ spentThisCycleMicros }),
  })
  const { api, edge, waitForState } = coordinator
  const owner = await createTestSession(coordinator)
  const member = { key: await createUserKey(coordinator, 'member') }
  const contractor = { key: await createUserKey(coordinator, 'contractor') }

  const setPolicies = async (changes: PatchPolicyRequest) =>
    t.equal((await api('PATCH', '/workspace/policies', changes, owner)).status, 200)
  const createRunning = async (body: object, options = {}) => {
    const { json } = await api('POST', '/boxes', body, options)
    await waitForState(json.box.id, 'running')
    return json.box
  }
  /** The response to a resize comes before its job has changed the state. */
  const waitUntilSettled = (id: string) =>
    waitUntil('the box has no job', async () => (await api('GET', `/boxes/${id}`)).json.job === null)
  const fig = await createRunning({ name: 'fig', tier: 'flow' })
  const plum = await createRunning({ name: 'plum', tier: 'lite' }, member)
  await api('POST', `/boxes/${fig.id}/suspend`)
  await waitForState(fig.id, 'suspended')
  const snapshot = await takeSnapshot(coordinator, plum.id)

  type Request = [method: string, path: string, body?: object]
  const create = (body: object = {}): Request => ['POST', '/boxes', body]
  const patch = (autoPauseMin: number | null): Request => ['PATCH', `/boxes/${plum.id}`, { autoPauseMin }]
  const fork = (body: object = {}): Request => ['POST', `/boxes/${plum.id}/fork`, body]
  const restore = (body: object = {}): Request => ['POST', `/snapshots/${snapshot}/restore`, body]
  const resize = (tier: string): Request => ['POST', `/boxes/${plum.id}/resize`, { target_tier: tier }]
  const wakeFig: Request = ['POST', `/boxes/${fig.id}/wake`]

  const send = ([method, path, body]: Request, options = {}) => api(method, path, body, options)
  const listBoxes = async (): Promise<Box[]> => (await api('GET', '/boxes')).json.boxes
  /** What a request changes. Other fields change while boxes start. */
  const listSettings = async () =>
    (await listBoxes()).map(({ id, tier, desiredState, autoPauseMin }) => [
      id,
      tier,
      desiredState,
      autoPauseMin,
    ])
  async function refuses(rule: PolicyRule, message: RegExp, requests: Request[], options = member) {
    const before = await listSettings()
    for (const request of requests) {
      const response = await send(request, options)
      t.match(response, { status: 403, json: { error: 'policy_denied', rule, message } }, request.join(' '))
    }
    t.same(await listSettings(), before, 'nothing is written')
  }

  await t.test('memberMaxTier', async () => {
    await setPolicies({ memberMaxTier: 'micro' })
    await refuses('memberMaxTier', /up to micro\. Choose a smaller tier/, [
      create({ tier: 'lite' }),
      ['POST', '/boxes', { fromSnapshotId: snapshot }],
      fork(),
      restore(),
      restore({ tier: 'flow' }),
      resize('pro'),
    ])
    await refuses('memberMaxTier', /`box resize fig micro`/, [wakeFig])
    t.match(
      await edge('fig', 'POST', '/exec', { command: 'id' }, member),
      { status: 403, json: { error: { code: 'policy_denied', message: /memberMaxTier/ } } },
      'a command wakes no box that the member may not wake',
    )
    const { json } = await api('POST', '/boxes', { name: 'small' }, member)
    t.equal(json.box.tier, 'micro', 'the default is not larger')
    t.equal((await api('POST', '/boxes', { name: 'large', tier: 'max' })).status, 202, 'an owner')
    await setPolicies({ memberMaxTier: null })
    for (const name of ['small', 'large']) {
      const box = (await listBoxes()).find(({ hostname }) => hostname === name)
      await api('DELETE', `/boxes/${box?.id}`)
    }
  })

  await t.test('memberBoxLimit', async (t) => {
    await setPolicies({ memberBoxLimit: 1 })
    await refuses('memberBoxLimit', /^You have 1 box,.* Delete a box with `box rm`/, [
      create(),
      ['POST', '/boxes', { fromSnapshotId: snapshot }],
      fork(),
      restore(),
    ])
    t.match(await api('POST', '/machines', {}, await createTestSession(coordinator, 'member')), {
      status: 201,
    })
    await setPolicies({ memberBoxLimit: null })
  })

  await t.test('memberSpendCapUsd', async (t) => {
    await setPolicies({ memberSpendCapUsd: 5 })
    spentThisCycleMicros = 4_999_999
    t.equal((await send(resize('flow'), member)).status, 202)
    await waitUntilSettled(plum.id)
    spentThisCycleMicros = 5_250_000
    await refuses('memberSpendCapUsd', /\$5\.25 .*\$5\.00\. Wait until the cycle ends at 2030-02-01T/, [
      create(),
      fork(),
      restore(),
      wakeFig,
      resize('pro'),
    ])
    t.equal((await send(resize('lite'), member)).status, 202, 'a smaller tier costs less')
    await waitUntilSettled(plum.id)
    await setPolicies({ memberSpendCapUsd: null })
  })

  await t.test('autoPauseFloorMin', async (t) => {
    t.equal((await send(patch(600), member)).status, 200)
    await setPolicies({ autoPauseFloorMin: 90 })
    t.equal((await api('GET', `/boxes/${plum.id}`)).json.box.autoPauseMin, 600, 'a box keeps its time')
    await refuses('autoPauseFloorMin', /must be at most 90/, [create({ autoPauseMin: 91 }), patch(91)])
    await refuses('autoPauseFloorMin', /must not be null/, [create({ autoPauseMin: null }), patch(null)])
    t.match((await send(patch(90), member)).json, { box: { autoPauseMin: 90 } })
    t.match((await send(create({ autoPauseMin: 60 }), member)).json, { box: { autoPauseMin: 60 } })
    for (const request of [create(), create({ fromSnapshotId: snapshot }), fork(), restore()]) {
      t.match((await send(request, member)).json, { box: { autoPauseMin: 90 } }, request.join(' '))
      t.match((await send(request)).json, { box: { autoPauseMin: null } }, `owner: ${request.join(' ')}`)
    }
    t.match((await send(patch(null))).json, { box: { autoPauseMin: null } }, 'an owner')
    await setPolicies({ autoPauseFloorMin: null })
  })

  await t.test('contractor_restricted', async (t) => {
    const requests = [create({ restricted: false })]
    await refuses('contractor_restricted', /Leave restricted out/, requests, contractor)
    for (const body of [{}, { restricted: true }])
      t.match((await send(create(body), contractor)).json, { box: { restricted: true } })
    t.match((await send(create({ restricted: false }), member)).json, { box: { restricted: false } })
  })

  await t.test('a refusal is an event of the audit log', async (t) => {
    await waitUntil('the denials are recorded', async () => {
      const { events } = (await api('GET', '/audit?kind=access.denied')).json
      return events.some(({ detail }: { detail: { rule?: string } }) => detail.rule === 'memberMaxTier')
    })
    t.pass()
  })
})
