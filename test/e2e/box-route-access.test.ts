// Every route of boxes and snapshots (spec §4.3, §4.8): ids that do not exist, and keys that may not use them (spec §5).
import t from 'tap'
import { transaction } from '../../coordinator/db/transaction.ts'
import { hashSecret } from '../../coordinator/http/hash-secret.ts'
import { addApiKey } from '../../coordinator/identity/keys/keys.ts'
import { newApiKey } from '../../shared/api-key.ts'
import { newId } from '../../shared/ids.ts'
import { startTestCoordinator, type TestCoordinator } from '../support/coordinator.ts'
import { createLimitedKey, createUserKey } from '../support/limited-key.ts'
import { waitUntil } from '../support/wait-until.ts'
import { createRunningBox, takeSnapshot } from './snapshots-support.ts'

type Ids = { box: string; snapshot: string }
type RouteCase = {
  request: (ids: Ids) => [method: string, path: string, body?: object]
  /** Whether a key limited to boxes gets key_access_denied, also for its own boxes. */
  workspaceWide?: boolean
}

const ROUTES: RouteCase[] = [
  { request: ({ box }) => ['GET', `/boxes/${box}`] },
  { request: ({ box }) => ['GET', `/boxes/${box}/metrics`] },
  { request: ({ box }) => ['GET', `/boxes/${box}/procs-at?t=${Math.floor(Date.now() / 1000)}`] },
  { request: ({ box }) => ['PATCH', `/boxes/${box}`, { autoPauseMin: 30 }] },
  { request: ({ box }) => ['POST', `/boxes/${box}/wake`] },
  { request: ({ box }) => ['POST', `/boxes/${box}/suspend`] },
  { request: ({ box }) => ['POST', `/boxes/${box}/resize`, { target_tier: 'pro' }] },
  { request: ({ box }) => ['POST', `/boxes/${box}/region`, { region: 'us-east-1' }] },
  { request: ({ box }) => ['POST', `/boxes/${box}/fork`, {}], workspaceWide: true },
  { request: ({ box }) => ['POST', `/boxes/${box}/template`, { name: 'base' }], workspaceWide: true },
  { request: ({ box }) => ['POST', '/snapshots', { boxId: box, name: 'a' }] },
  { request: ({ snapshot }) => ['POST', `/snapshots/${snapshot}/restore`, {}], workspaceWide: true },
  {
    request: ({ snapshot }) => ['POST', `/snapshots/${snapshot}/template`, { name: 'base' }],
    workspaceWide: true,
  },
  { request: ({ snapshot }) => ['DELETE', `/snapshots/${snapshot}/template`], workspaceWide: true },
  { request: ({ snapshot }) => ['POST', '/boxes', { fromSnapshotId: snapshot }], workspaceWide: true },
  { request: () => ['POST', '/boxes', { fromTemplate: 'of-the-owner' }], workspaceWide: true },
  { request: ({ snapshot }) => ['DELETE', `/snapshots/${snapshot}`] },
  { request: ({ box }) => ['DELETE', `/boxes/${box}`] },
]

/** Adds another workspace with an owner. Returns the owner's key. */
async function createForeignKey({ instance }: TestCoordinator): Promise<string> {
  const { db, clock } = instance.context
  const [key, workspaceId, userId, now] = [newApiKey(), newId('workspace'), newId('user'), clock.now()]
  await transaction(db, async (trx) => {
    await trx
      .insertInto('workspaces')
      .values({ id: workspaceId, name: 'foreign', zero_data_retention: 0, created_at: now })
      .execute()
    await trx
      .insertInto('users')
      .values({
        ...{ id: userId, workspace_id: workspaceId, email: null, name: 'foreign' },
        ...{ role: 'owner', created_at: now },
      })
      .execute()
    await addApiKey(trx, { workspaceId, userId, hash: hashSecret(key), now })
  })
  return key
}

/** Everything that the requests could write. */
async function readState({ instance }: TestCoordinator) {
  const { db } = instance.context
  return Promise.all([
    db
      .selectFrom('boxes')
      .select(['id', 'desired_state', 'observed_state', 'desired_region', 'tier', 'auto_pause_min'])
      .orderBy('id')
      .execute(),
    db.selectFrom('jobs').selectAll().execute(),
    db.selectFrom('snapshots').selectAll().execute(),
    db.selectFrom('snapshot_jobs').selectAll().execute(),
    db.selectFrom('operations').selectAll().execute(),
    db.selectFrom('box_moves').selectAll().execute(),
    db.selectFrom('idempotency_keys').selectAll().execute(),
  ])
}

t.test('a request that may not reach a box or snapshot is refused, and writes nothing', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, instance } = coordinator
  const ids: Ids = { box: await createRunningBox(coordinator), snapshot: '' }
  ids.snapshot = await takeSnapshot(coordinator, ids.box)
  await api('POST', `/snapshots/${ids.snapshot}/template`, { name: 'of-the-owner' })
  const otherBox = await createRunningBox(coordinator)
  const { json: first } = await api('GET', '/boxes')
  for (const { id } of first.boxes) await coordinator.waitForState(id, 'running')
  const { db } = instance.context
  for (const table of ['jobs', 'snapshot_jobs'] as const)
    await waitUntil(
      `${table} is empty`,
      async () => (await db.selectFrom(table).selectAll().execute()).length === 0,
    )
  const before = await readState(coordinator)

  const owner = coordinator.key
  const foreign = await createForeignKey(coordinator)
  const contractor = await createUserKey(coordinator, 'contractor')
  const ofOtherBox = await createLimitedKey(coordinator, { boxIds: [otherBox] })
  const readOnly = await createLimitedKey(coordinator, { access: { boxes: 'read' } })
  const runner = await createLimitedKey(coordinator, { access: { boxes: 'run' } })
  const withoutBoxes = await createLimitedKey(coordinator, { access: { workspace: 'read' } })
  const unknown = { box: crypto.randomUUID(), snapshot: newId('snapshot') }
  const notFound = { status: 404, json: { error: 'not_found', message: String } }

  for (const { request, workspaceWide } of ROUTES) {
    const [method, path, body] = request(ids)
    const send = (key: string) => api(method, path, body, { key })
    const name = `${method} ${path} ${JSON.stringify(body ?? null)}`
    if (JSON.stringify(request(unknown)) !== JSON.stringify([method, path, body]))
      for (const wrong of [
        unknown,
        { box: 'fig', snapshot: 'first' },
        { box: '..%2f', snapshot: 'snp_%00' },
      ]) {
        const [, wrongPath, wrongBody] = request(wrong)
        t.match(await api(method, wrongPath, wrongBody, { key: owner }), notFound, `${method} ${wrongPath}`)
      }
    t.match(await send(foreign), notFound, `${name}: another workspace`)
    t.match(await send(contractor), notFound, `${name}: a contractor`)
    t.match(
      await send(ofOtherBox),
      workspaceWide
        ? { status: 403, json: { error: 'key_access_denied', scope: 'boxes', message: String } }
        : notFound,
      `${name}: a key of another box`,
    )
    const level = method === 'GET' ? 'read' : path.endsWith('/wake') ? 'run' : 'write'
    const denied = {
      status: 403,
      json: { error: 'key_access_denied', area: 'boxes', level, message: new RegExp(`lacks ${level}`) },
    }
    t.match(await send(withoutBoxes), denied, `${name}: a key without access to boxes`)
    if (method !== 'GET') t.match(await send(readOnly), denied, `${name}: a read-only key`)
    if (level === 'write') t.match(await send(runner), denied, `${name}: a key that only runs`)
  }
  t.match(await api('POST', '/boxes', {}, { key: readOnly }), { status: 403, json: { level: 'write' } })
  t.equal((await api('GET', `/boxes/${ids.box}`, undefined, { key: readOnly })).status, 200)
  for (const key of [foreign, contractor]) {
    t.same((await api('GET', '/boxes', undefined, { key })).json, { boxes: [] })
    t.same((await api('GET', '/snapshots?transient=1', undefined, { key })).json, { snapshots: [] })
  }
  t.same((await api('GET', '/snapshots', undefined, { key: ofOtherBox })).json, { snapshots: [] })
  t.same(await readState(coordinator), before)
})
