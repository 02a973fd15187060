// PATCH /boxes/{id} over HTTP (spec §4.3): the settings of a box, its variables, and each error code.
import t from 'tap'
import { boxResponseSchema, type PatchBoxRequest } from '../../shared/api/boxes.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createLimitedKey, createUserKey } from '../support/limited-key.ts'
import { createTestClock, type TestClock } from '../support/workspace.ts'

const UNKNOWN_ID = '0d1f6bd5-7a7e-4a52-9a3c-1f2f3c4d5e6f'
const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const MIXED = 'env must not be given together with other fields'

const isoIn = (clock: TestClock, ms: number) => new Date(clock.now() + ms).toISOString()

async function startWithBox(t: Parameters<typeof startTestCoordinator>[0]) {
  const clock = createTestClock()
  const coordinator = await startTestCoordinator(t, { clock })
  const { json } = await coordinator.api('POST', '/boxes', { name: 'plum' })
  const { id } = json.box
  await coordinator.waitForState(id, 'running')
  return {
    ...coordinator,
    clock,
    id,
    patch: (body: unknown, boxId = id) => coordinator.api('PATCH', `/boxes/${boxId}`, body),
  }
}

t.test('changes the settings that the request names, and keeps the others', async (t) => {
  const { patch, clock, api, id } = await startWithBox(t)
  const patchOk = async (body: PatchBoxRequest) => {
    clock.advance(1000)
    const response = await patch(body)
    t.equal(response.status, 200, JSON.stringify(body))
    const { box } = boxResponseSchema.parse(response.json)
    t.equal(box.updatedAt, isoIn(clock, 0))
    t.same((await api('GET', `/boxes/${id}`)).json.box, box, 'the change is stored')
    return box
  }
  t.match(await patchOk({ autoPauseMin: 30 }), { autoPauseMin: 30, autoSnapshotHours: null, pauseAt: null })
  t.match(await patchOk({ autoSnapshotHours: 168, autoSnapshotKeep: 10 }), {
    autoPauseMin: 30,
    autoSnapshotHours: 168,
    autoSnapshotKeep: 10,
  })
  t.match(await patchOk({ autoPauseMin: null, autoSnapshotHours: null }), {
    autoPauseMin: null,
    autoSnapshotHours: null,
    autoSnapshotKeep: 10,
  })
  t.match(await patchOk({ quietHoursExempt: true }), { quietHoursExempt: true })
  t.match(await patchOk({ quietHoursExempt: false }), { quietHoursExempt: false })
})

t.test('a deadline is set in minutes or as a time, and cleared by null', async (t) => {
  const { patch, clock } = await startWithBox(t)
  t.equal((await patch({ ttlMinutes: 5 })).json.box.pauseAt, isoIn(clock, 5 * MINUTE_MS))
  t.equal((await patch({ ttlMinutes: null })).json.box.pauseAt, null)
  t.equal((await patch({ ttlMinutes: 43_200 })).json.box.pauseAt, isoIn(clock, 30 * DAY_MS))
  for (const pauseAt of [isoIn(clock, 1000), isoIn(clock, 30 * DAY_MS)])
    t.equal((await patch({ pauseAt })).json.box.pauseAt, pauseAt)
  t.equal((await patch({ pauseAt: null })).json.box.pauseAt, null)
  const both = await patch({ ttlMinutes: 10, autoPauseMin: 60 })
  t.match(both.json.box, { pauseAt: isoIn(clock, 10 * MINUTE_MS), autoPauseMin: 60 })
})

t.test('a suspended box rejects a deadline, and its deadline can be cleared', async (t) => {
  const { patch, api, id, waitForState, clock } = await startWithBox(t)
  await patch({ ttlMinutes: 60 })
  await api('POST', `/boxes/${id}/suspend`)
  const whileSuspending = await patch({ ttlMinutes: 5 })
  t.match(whileSuspending.json, { error: 'box_not_running' })
  await waitForState(id, 'suspended')
  for (const body of [
    { ttlMinutes: 5 },
    { pauseAt: isoIn(clock, MINUTE_MS) },
    { ttlMinutes: 5, autoPauseMin: 30 },
  ]) {
    const response = await patch(body)
    t.equal(response.status, 409)
    t.match(response.json, {
      error: 'box_not_running',
      state: 'suspended',
      message: /Wake it with `box wake plum`/,
    })
  }
  const { status, json } = await patch({ pauseAt: null, autoPauseMin: 30 })
  t.equal(status, 200)
  t.match(json.box, { pauseAt: null, autoPauseMin: 30 })
})

t.test('a new name applies immediately, to the snapshots too, and frees the old one', async (t) => {
  const { patch, api, edge, id, waitForState } = await startWithBox(t)
  t.equal((await api('POST', '/snapshots', { boxId: id, name: 'before' })).status, 201)
  const { status, json } = await patch({ name: 'lime' })
  t.equal(status, 200)
  t.equal(json.box.hostname, 'lime')
  t.not((await edge('lime', 'GET', '/exec')).status, 404)
  t.equal((await edge('plum', 'GET', '/exec')).status, 404)
  t.match((await api('GET', '/snapshots')).json.snapshots, [{ boxId: id, sourceBoxHostname: 'lime' }])
  const second = await api('POST', '/boxes', { name: 'plum' })
  t.equal(second.status, 202)
  const taken = await patch({ name: 'plum' })
  t.equal(taken.status, 409)
  t.same(taken.json, {
    error: 'name_taken',
    message: 'A box named plum already exists. Choose another name.',
  })
  await waitForState(second.json.box.id, 'running')
})

t.test('env alone replaces the variables', async (t) => {
  const { patch } = await startWithBox(t)
  t.same((await patch({ env: { A: '1', B: 'ü' } })).json.box.envVars, [
    { name: 'A', value: '1' },
    { name: 'B', value: 'ü' },
  ])
  t.same((await patch({ env: { C: '' } })).json.box.envVars, [{ name: 'C', value: '' }])
  t.same((await patch({ env: {} })).json.box.envVars, [])
})

t.test('rejects an invalid request with the code of its field, and changes nothing', async (t) => {
  const { patch, clock, api, id } = await startWithBox(t)
  const many = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`V${index}`, '']))
  const before = (await api('GET', `/boxes/${id}`)).json.box
  for (const [body, code, message] of [
    [{}, 'bad_request', 'body must have at least one field to change'],
    [undefined, 'bad_request', 'body must have at least one field to change'],
    [{ unknown: 1 }, 'bad_request', 'unknown field unknown'],
    [[], 'bad_request', 'body must be a JSON object'],
    [{ env: {}, autoPauseMin: 30 }, 'bad_request', MIXED],
    [{ env: { A: '1' }, ttlMinutes: null }, 'bad_request', MIXED],
    [{ env: {}, name: 'lime' }, 'bad_request', MIXED],
    [{ name: 'Not A Name' }, 'invalid_name', undefined],
    [{ name: '' }, 'invalid_name', undefined],
    [{ name: null }, 'invalid_name', undefined],
    [{ autoPauseMin: 29 }, 'invalid_auto_pause', 'autoPauseMin must be an integer between 30 and 10080'],
    [{ autoPauseMin: 10_081 }, 'invalid_auto_pause', undefined],
    [{ autoPauseMin: '30' }, 'invalid_auto_pause', undefined],
    [{ ttlMinutes: 4 }, 'invalid_pause_at', 'ttlMinutes must be an integer between 5 and 43200'],
    [{ deleteAfterMinutes: 4 }, 'bad_request', 'deleteAfterMinutes must be an integer between 5 and 525600'],
    [{ deleteAfterMinutes: '2h' }, 'bad_request', undefined],
    [{ ttlMinutes: 43_201 }, 'invalid_pause_at', undefined],
    [
      { ttlMinutes: 5, pauseAt: isoIn(clock, DAY_MS) },
      'invalid_pause_at',
      'ttlMinutes and pauseAt must not be given together',
    ],
    [{ ttlMinutes: null, pauseAt: null }, 'invalid_pause_at', undefined],
    [
      { pauseAt: isoIn(clock, 0) },
      'invalid_pause_at',
      'pauseAt must be in the future and at most 30 days away',
    ],
    [{ pauseAt: isoIn(clock, -DAY_MS) }, 'invalid_pause_at', undefined],
    [{ pauseAt: isoIn(clock, 30 * DAY_MS + 1) }, 'invalid_pause_at', undefined],
    [
      { pauseAt: 'tomorrow' },
      'invalid_pause_at',
      'pauseAt must be RFC 3339 with Z or an offset, such as 2026-01-31T03:14:00Z, or epoch seconds',
    ],
    [{ pauseAt: 1_900_000_000 }, 'invalid_pause_at', undefined],
    [
      { autoSnapshotHours: 0 },
      'invalid_auto_snapshot',
      'autoSnapshotHours must be an integer between 1 and 168',
    ],
    [{ autoSnapshotHours: 169 }, 'invalid_auto_snapshot', undefined],
    [
      { autoSnapshotKeep: 11 },
      'invalid_auto_snapshot',
      'autoSnapshotKeep must be an integer between 1 and 10',
    ],
    [{ autoSnapshotKeep: null }, 'invalid_auto_snapshot', undefined],
    [{ quietHoursExempt: 'yes' }, 'bad_request', 'quietHoursExempt must be true or false'],
    [{ env: { '1A': 'x' } }, 'invalid_env', undefined],
    [{ env: { A: 'a\0' } }, 'invalid_env', 'env.A must not contain a NUL byte'],
    [{ env: many }, 'invalid_env', undefined],
    [{ env: null }, 'invalid_env', 'env must be a JSON object'],
    // An invalid field rejects the valid ones too.
    [{ ttlMinutes: 10, autoPauseMin: 1 }, 'invalid_auto_pause', undefined],
  ] as const) {
    const response = await patch(body)
    t.equal(response.status, 400, JSON.stringify(body)?.slice(0, 60))
    t.equal(response.json.error, code, JSON.stringify(body)?.slice(0, 60))
    if (message !== undefined) t.equal(response.json.message, message)
  }
  t.same((await api('GET', `/boxes/${id}`)).json.box, before)
})

t.test('a box that is deleted, unknown or not addressed by its id is not found', async (t) => {
  const { patch, api, id, waitForState } = await startWithBox(t)
  for (const unknown of [UNKNOWN_ID, 'plum'])
    t.equal((await patch({ autoPauseMin: 30 }, unknown)).status, 404)
  await api('DELETE', `/boxes/${id}`)
  t.equal((await patch({ autoPauseMin: 30 })).json.error, 'not_found')
  await waitForState(id, 'terminated')
  t.equal((await patch({ env: {} })).json.error, 'not_found')
})

t.test('only an owner sets quietHoursExempt, and a contractor reaches only its own boxes', async (t) => {
  const coordinator = await startWithBox(t)
  const { api, id } = coordinator
  const asMember = { key: await createUserKey(coordinator, 'member') }
  const asContractor = { key: await createUserKey(coordinator, 'contractor') }
  for (const value of [true, false]) {
    const refused = await api(
      'PATCH',
      `/boxes/${id}`,
      { quietHoursExempt: value, autoPauseMin: 30 },
      asMember,
    )
    t.equal(refused.status, 403)
    t.equal(refused.json.error, 'not_owner')
  }
  t.equal((await api('GET', `/boxes/${id}`)).json.box.autoPauseMin, null, 'nothing of the request is written')
  t.equal((await api('PATCH', `/boxes/${id}`, { autoPauseMin: 30 }, asMember)).status, 200)
  t.equal((await api('PATCH', `/boxes/${id}`, { autoPauseMin: 60 }, asContractor)).status, 404)
  const { json } = await api('POST', '/boxes', {}, asContractor)
  t.equal((await api('PATCH', `/boxes/${json.box.id}`, { autoPauseMin: 60 }, asContractor)).status, 200)
  const readOnly = { key: await createLimitedKey(coordinator, { access: { boxes: 'read' } }) }
  const denied = await api('PATCH', `/boxes/${id}`, { autoPauseMin: 90 }, readOnly)
  t.match(denied.json, { error: 'key_access_denied', area: 'boxes', level: 'write' })
})
