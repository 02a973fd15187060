// Idempotency-Key on every route that accepts it (spec §4.1.6).
import t from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createLimitedKey, createUserKey } from '../support/limited-key.ts'
import { expandDocument } from '../support/openapi-document.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { createTestClock } from '../support/workspace.ts'
import { createRunningBox, takeSnapshot } from './snapshots-support.ts'

const DAY_MS = 24 * 60 * 60 * 1000

type RouteCase = {
  status: number
  path: string
  body: object
  otherBody: object
  /** The same route with another id. */
  otherPath?: string
  /** A request of the route that is refused with 404. */
  refused: [path: string, body: object]
  workspaceWide?: boolean
}

function listRoutes(
  boxes: [string, string],
  snapshots: [string, string],
  members: [string, string],
): RouteCase[] {
  const [box, otherBox] = boxes
  const [snapshot, otherSnapshot] = snapshots
  const unknown = `/boxes/${crypto.randomUUID()}`
  const tier = { body: { tier: 'nano' }, otherBody: { tier: 'micro' } }
  return [
    {
      ...{ status: 202, path: '/boxes', ...tier, workspaceWide: true },
      refused: ['/boxes', { fromTemplate: 'none' }],
    },
    {
      ...{ status: 202, path: `/boxes/${box}/fork`, otherPath: `/boxes/${otherBox}/fork`, ...tier },
      ...{ refused: [`${unknown}/fork`, {}], workspaceWide: true },
    },
    {
      ...{ status: 201, path: `/boxes/${box}/template`, otherPath: `/boxes/${otherBox}/template` },
      ...{ body: { name: 'base' }, otherBody: { name: 'other' }, workspaceWide: true },
      refused: [`${unknown}/template`, { name: 'base' }],
    },
    {
      ...{ status: 202, path: `/boxes/${box}/resize`, otherPath: `/boxes/${otherBox}/resize` },
      ...{ body: { target_tier: 'nano' }, otherBody: { target_tier: 'pro' } },
      refused: [`${unknown}/resize`, { target_tier: 'nano' }],
    },
    {
      ...{ status: 202, path: `/boxes/${box}/region`, otherPath: `/boxes/${otherBox}/region` },
      ...{ body: { region: 'us-east-1' }, otherBody: { region: 'us-east-2' } },
      refused: [`${unknown}/region`, { region: 'us-east-1' }],
    },
    {
      ...{ status: 200, path: `/boxes/${box}/owner`, otherPath: `/boxes/${otherBox}/owner` },
      ...{ body: { ownerUserId: members[0] }, otherBody: { ownerUserId: members[1] } },
      refused: [`${unknown}/owner`, { ownerUserId: members[0] }],
    },
    {
      ...{ status: 201, path: '/snapshots' },
      ...{ body: { boxId: box, name: 'a' }, otherBody: { boxId: otherBox, name: 'a' } },
      refused: ['/snapshots', { boxId: 'unknown', name: 'a' }],
    },
    {
      ...{ status: 202, path: `/snapshots/${snapshot}/restore`, ...tier, workspaceWide: true },
      ...{ otherPath: `/snapshots/${otherSnapshot}/restore`, refused: ['/snapshots/unknown/restore', {}] },
    },
  ]
}

t.test('a repeated request is replayed, and a different one with the same key is refused', async (t) => {
  const clock = createTestClock()
  const coordinator = await startTestCoordinator(t, { clock })
  const { api, send, instance } = coordinator
  const boxes: [string, string] = [
    await createRunningBox(coordinator, { name: 'plum' }),
    await createRunningBox(coordinator, { name: 'fig' }),
  ]
  const snapshots: [string, string] = [
    await takeSnapshot(coordinator, boxes[0]),
    await takeSnapshot(coordinator, boxes[1]),
  ]
  const members: [string, string] = [
    (await createTestSession(coordinator, 'member')).userId,
    (await createTestSession(coordinator, 'member')).userId,
  ]
  const routes = listRoutes(boxes, snapshots, members)
  const member = await createUserKey(coordinator, 'member')
  const limited = await createLimitedKey(coordinator, { boxIds: boxes })

  const { paths } = expandDocument((await send('GET', '/openapi.json')).json)
  const documented = Object.entries<Record<string, { parameters?: { name: string }[] }>>(paths)
    .filter(([, { post }]) => post?.parameters?.some(({ name }) => name === 'Idempotency-Key'))
    .map(([path]) => path)
    // Agents keep the keys of commands: see start-once.test.ts.
    .filter((path) => path !== '/v1/box/{box}/exec')
  t.equal(documented.length, routes.length, `no other route accepts the header: ${documented}`)

  const { db } = instance.context
  const waitForIdle = () =>
    waitUntil('no box and no snapshot changes its state', async () => {
      const [jobs, snapshotJobs] = await Promise.all([
        db.selectFrom('jobs').select('box_id').execute(),
        db.selectFrom('snapshot_jobs').select('snapshot_id').execute(),
      ])
      return jobs.length === 0 && snapshotJobs.length === 0
    })
  const countRows = async () => {
    const counts = []
    for (const table of ['boxes', 'snapshots', 'box_moves', 'box_events'] as const)
      counts.push((await db.selectFrom(table).selectAll().execute()).length)
    return counts
  }

  for (const { status, path, body, otherBody, otherPath, refused, workspaceWide } of routes) {
    await waitForIdle()
    const idempotencyKey = `key-${path.replaceAll('/', '-')}`
    const post = (path: string, body: object, key = coordinator.key, header = idempotencyKey) =>
      api('POST', path, body, { key, headers: { 'idempotency-key': header } })
    t.match(await post(path, body, coordinator.key, 'two words'), {
      status: 400,
      json: { error: 'invalid_idempotency_key' },
    })
    t.match(await post(...refused), { status: 404, json: { error: 'not_found' } }, `${refused} is refused`)

    const first = await post(path, body)
    t.equal(first.status, status, `${path}: the key of a refused request can be used again`)
    t.notOk(first.headers.has('idempotent-replayed'))
    await waitForIdle()
    const rows = await countRows()
    const replay = await post(path, body)
    t.equal(replay.headers.get('idempotent-replayed'), 'true', path)
    t.match(replay, { status, text: first.text })

    const reused = { status: 422, json: { error: 'idempotency_key_reused' } }
    t.match(await post(path, otherBody), reused, `${path}: another body`)
    t.match(await post(path, body, member), reused, `${path}: another member`)
    if (otherPath !== undefined) t.match(await post(otherPath, body), reused, `${path}: another id`)
    t.match(
      await post(path, body, limited),
      workspaceWide ? { status: 403, json: { error: 'key_access_denied', scope: 'boxes' } } : reused,
      `${path}: a key limited to boxes`,
    )
    t.same(await countRows(), rows, `${path}: nothing is written`)

    clock.advance(DAY_MS)
    const later = await post(path, body)
    t.equal(later.status, status, `${path}: a day later`)
    t.notOk(later.headers.has('idempotent-replayed'))
  }
})
