// POST /boxes/{id}/resize and /region over HTTP (spec §4.3, §7.1, §8).
import t, { type Test } from 'tap'
import { createProviders } from '../../coordinator/providers/regions.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { createLimitedKey, createUserKey } from '../support/limited-key.ts'
import { waitUntil } from '../support/wait-until.ts'

const GB = 1000 ** 3
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'

/** A coordinator whose boxes use this much of a shared disk. */
async function start(t: Test, usedBytes = 0, inodes = 10) {
  const infra = new FakeInfrastructure()
  const sharedDisk = {
    fileSystem: 'shared',
    measure: async () => ({ bytes: usedBytes, inodes }),
    readSpace: async () => ({ bytes: { free: 900 * GB, total: 1000 * GB }, inodes: null }),
  }
  const coordinator = await startTestCoordinator(t, { infra, provider: { ...infra.provider, sharedDisk } })
  const { api, waitForState } = coordinator
  async function createBox(body: object = {}): Promise<string> {
    const { json } = await api('POST', '/boxes', body)
    await waitForState(json.box.id, 'running')
    return json.box.id
  }
  const waitForIdle = (id: string): Promise<unknown> =>
    waitUntil('the job has ended', async () => {
      const { json } = await api('GET', `/boxes/${id}`)
      return json.job === null && json
    })
  return { ...coordinator, createBox, waitForIdle }
}

t.test('resizes a box', async (t) => {
  const { api, createBox, waitForIdle } = await start(t)
  const id = await createBox()
  const response = await api('POST', `/boxes/${id}/resize`, { target_tier: 'pro' })
  t.equal(response.status, 202)
  t.match(response.json, { box: { id, tier: 'pro', observedState: 'running', desiredState: 'running' } })
  t.match(await waitForIdle(id), { box: { tier: 'pro', observedState: 'running' } })
  const again = await api('POST', `/boxes/${id}/resize`, { target_tier: 'pro' })
  t.match([again.status, again.json.box.tier], [202, 'pro'])
  t.match(await api('GET', `/boxes/${id}`), { json: { job: null } }, 'a box with this tier does not restart')
})

t.test('rejects a resize that is not possible', async (t) => {
  const { api, infra, createBox } = await start(t, 50 * GB)
  const id = await createBox({ tier: 'flow' })
  const resize = (boxId: string, body: unknown, options = {}) =>
    api('POST', `/boxes/${boxId}/resize`, body, options)
  t.match(await resize(id, { target_tier: 'huge' }), { status: 400, json: { error: 'invalid_tier' } })
  t.match(await resize(id, {}), { status: 400, json: { error: 'invalid_tier' } })
  t.match(await resize(UNKNOWN_ID, { target_tier: 'pro' }), { status: 404, json: { error: 'not_found' } })
  t.match(await resize(id, { target_tier: 'lite' }), {
    status: 400,
    json: { error: 'resize_rejected', message: /use 50\.0 GB.*tier lite has 40 GB/ },
  })
  t.match(await resize(id, { target_tier: 'lite' }, { headers: { 'idempotency-key': 'too-small' } }), {
    status: 400,
    json: { error: 'resize_rejected', message: /use 50\.0 GB/ },
  })
  infra.agentsConnect = false
  const { json } = await api('POST', '/boxes', {})
  t.match(await resize(json.box.id, { target_tier: 'pro' }), {
    status: 400,
    json: { error: 'resize_rejected', message: /running or suspended/ },
  })
  t.match((await api('GET', `/boxes/${id}`)).json, { box: { tier: 'flow' }, job: null })
})

t.test('rejects a tier that allows fewer files than the box has', async (t) => {
  const { api, createBox } = await start(t, 0, 3_000_000)
  const id = await createBox({ tier: 'flow' })
  t.match(await api('POST', `/boxes/${id}/resize`, { target_tier: 'lite' }), {
    status: 400,
    json: {
      error: 'resize_rejected',
      message: /has 3000000 files and directories.*tier lite allows 2400000/,
    },
  })
})

t.test('moves a box, and repeats the response with the same Idempotency-Key', async (t) => {
  const { api, createBox, waitForIdle } = await start(t)
  const id = await createBox()
  const headers = { 'idempotency-key': 'move-1' }
  const move = () => api('POST', `/boxes/${id}/region`, { region: 'us-east-1' }, { headers })
  const first = await move()
  t.match(first, {
    status: 202,
    json: { box: { id, region: 'us-west-2', desiredRegion: 'us-east-1', desiredState: 'running' } },
  })
  t.match(await waitForIdle(id), {
    box: { region: 'us-east-1', desiredRegion: null, observedState: 'running' },
  })
  const repeated = await move()
  t.equal(repeated.headers.get('idempotent-replayed'), 'true')
  t.equal(repeated.text, first.text)
  const home = await api('POST', `/boxes/${id}/region`, { region: 'us-east-1' })
  t.match([home.status, home.json.box.desiredRegion], [202, null], 'the box is in this region')
})

t.test('rejects a second move of a box and a fourth one in the workspace', async (t) => {
  const { api, instance, createBox, waitForIdle } = await start(t)
  const ids: string[] = []
  for (let i = 0; i < 4; i++) ids.push(await createBox())
  const move = (id: string, region: string) => api('POST', `/boxes/${id}/region`, { region })
  const [first = '', , , fourth = ''] = ids
  for (const id of ids.slice(0, 3)) {
    t.equal((await move(id, 'us-east-1')).status, 202)
    await waitForIdle(id)
  }
  t.match(await move(first, 'us-west-2'), {
    status: 400,
    json: { error: 'move_rejected', message: /moved in the last 24 hours.*again at \d{4}-/ },
  })
  t.match(await move(fourth, 'us-east-1'), {
    status: 400,
    json: { error: 'move_rejected', message: /^3 boxes of the workspace.*at \d{4}-/ },
  })
  const { db, clock } = instance.context
  await db
    .updateTable('box_moves')
    .set({ at: clock.now() - 24 * 3_600_000 - 1000 })
    .where('box_id', '=', first)
    .execute()
  t.equal((await move(fourth, 'us-east-1')).status, 202, 'a day after the first move')
  await waitForIdle(fourth)
})

t.test('rejects a region that is not served, and boxes of others', async (t) => {
  const infra = new FakeInfrastructure()
  const byRegion = new Map([['us-west-2', infra.provider] as const, ['us-east-1', infra.provider] as const])
  const coordinator = await startTestCoordinator(t, { infra, providers: createProviders(byRegion) })
  const { api, waitForState } = coordinator
  const { json } = await api('POST', '/boxes', {})
  const { id } = json.box
  await waitForState(id, 'running')
  const move = (body: unknown, options = {}) => api('POST', `/boxes/${id}/region`, body, options)
  t.match(await move({ region: 'mars' }), { status: 400, json: { error: 'invalid_region' } })
  t.match(await move({ region: 'eu-central-1' }), {
    status: 400,
    json: { error: 'move_rejected', message: /Use one of: us-west-2, us-east-1/ },
  })
  const contractor = await createUserKey(coordinator, 'contractor')
  const readOnly = await createLimitedKey(coordinator, { access: { boxes: 'read' } })
  for (const [path, body] of [
    ['region', { region: 'us-east-1' }],
    ['resize', { target_tier: 'pro' }],
  ] as const) {
    const send = (key: string) => api('POST', `/boxes/${id}/${path}`, body, { key })
    t.match(await send(contractor), { status: 404, json: { error: 'not_found' } })
    t.match(await send(readOnly), { status: 403, json: { error: 'key_access_denied' } })
  }
})
