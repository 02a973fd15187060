// Environments over HTTP: every route with its responses and codes, and the boxes that are created with them.
import t from 'tap'
import { subscribeToVariableChanges } from '../../coordinator/boxes/variable-changes.ts'
import { LIMITS } from '../../shared/limits.ts'
import { startTestCoordinator, type TestCoordinator } from '../support/coordinator.ts'
import { createLimitedKey, createUserKey } from '../support/limited-key.ts'
import { waitUntil } from '../support/wait-until.ts'
import { createRunningBox, takeSnapshot, waitForStatus } from './snapshots-support.ts'

const UNKNOWN = 'env_00000000000000000000'
const text = (bytes: number) => 'a'.repeat(bytes)

/** The names of what the audit event of the newest change has. */
async function readAudit({ instance }: TestCoordinator, kind: string) {
  const rows = await instance.context.db
    .selectFrom('audit_log')
    .select('detail')
    .where('kind', '=', kind)
    .orderBy('no')
    .execute()
  return rows.map(({ detail }) => JSON.parse(detail ?? '{}'))
}

t.test('every route', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api } = coordinator

  const created = await api('POST', '/environments', {
    name: 'web',
    description: 'the shop',
    vars: { B: '2', A: '1' },
    files: [
      { path: '~/.npmrc', content: 'secret of npm', mode: '0640' },
      { path: '/etc/app/key', contentBase64: 'AAEC' },
    ],
    repos: [{ repo: 'acme/shop', ref: 'main', secret: 'GITHUB_TOKEN' }],
    toggles: { git: true },
  })
  t.equal(created.status, 201)
  const { id } = created.json.environment
  const path = `/environments/${id}`
  t.match(created.json.environment, {
    id: /^env_/,
    name: 'web',
    description: 'the shop',
    isDefault: false,
    latestVersionNo: 1,
    vars: [
      { name: 'A', value: '1' },
      { name: 'B', value: '2' },
    ],
    files: [
      { path: '/etc/app/key', mode: '0600', size: 3 },
      { path: '~/.npmrc', mode: '0640', size: 13 },
    ],
    repos: [{ repo: 'acme/shop', ref: 'main', secret: 'GITHUB_TOKEN' }],
    toggles: { restricted: false, git: true, cloud: false, codingAgents: false },
    boxCount: 0,
  })
  const list = await api('GET', '/environments')
  t.same(list.json, { environments: [created.json.environment] })

  type Case = [method: string, path: string, body: object | undefined, expected: object]
  /** Each creates a version. The environment after it has these fields. */
  const changes: Case[] = [
    ['POST', `${path}/vars`, { name: 'A', value: '3' }, { vars: [{ value: '3' }, {}] }],
    ['DELETE', `${path}/vars/B`, undefined, { vars: [{ name: 'A' }] }],
    [
      'PUT',
      `${path}/files`,
      { path: '~/.npmrc', content: 'other' },
      { files: [{}, { mode: '0600', size: 5 }] },
    ],
    [
      'PUT',
      `${path}/files`,
      { path: '~/.npmrc', content: 'other', mode: '700' },
      { files: [{}, { mode: '0700' }] },
    ],
    ['DELETE', `${path}/files?path=/etc/app/key`, undefined, { files: [{ path: '~/.npmrc' }] }],
    ['POST', `${path}/repos`, { repo: 'https://git.example.com/a/b.git' }, { repos: [{}, { repo: /a\/b/ }] }],
    ['POST', `${path}/repos`, { repo: 'acme/shop' }, { repos: [{ repo: 'acme/shop' }, {}] }],
    ['DELETE', `${path}/repos?repo=acme/shop`, undefined, { repos: [{ repo: /a\/b/ }] }],
    ['POST', `${path}/toggles`, { cloud: true }, { toggles: { git: true, cloud: true } }],
    [
      'PATCH',
      path,
      { vars: { C: '1' }, toggles: { git: false } },
      { vars: [{ name: 'C' }], toggles: { git: false } },
    ],
    ['PATCH', path, { files: [], repos: [] }, { files: [], repos: [] }],
  ]
  const read = async () => (await api('GET', '/environments')).json.environments[0]
  let versionNo = 1
  for (const [method, route, body, expected] of changes) {
    versionNo += 1
    for (const attempt of ['changes', 'changes nothing when repeated']) {
      const { status, json } = await api(method, route, body)
      t.equal(status, method === 'DELETE' ? 204 : 200, `${method} ${route}`)
      const environment = await read()
      t.match(environment, { latestVersionNo: versionNo, ...expected }, `${method} ${route} ${attempt}`)
      if (method !== 'DELETE') t.same(json, { environment })
    }
  }
  t.equal((await read()).vars.length, 1)
  t.match(await api('PATCH', path, { name: 'shop', description: null }), {
    status: 200,
    json: { environment: { name: 'shop', description: null, latestVersionNo: versionNo } },
  })

  const other = (await api('POST', '/environments', { name: 'web', isDefault: true })).json.environment
  t.equal(other.isDefault, true)
  t.match(await api('POST', `${path}/default`), { status: 200, json: { environment: { isDefault: true } } })
  t.match((await api('GET', '/environments')).json.environments, [
    { name: 'shop', isDefault: true },
    { name: 'web', isDefault: false },
  ])
  t.match((await api('PATCH', path, { isDefault: false })).json.environment, { isDefault: false })
  t.match(await api('POST', `${path}/upgrade`), {
    status: 200,
    json: { upgraded: [], skipped: [], latestVersionNo: versionNo },
  })
  for (const _ of [1, 2]) t.equal((await api('DELETE', path)).status, 204)
  t.same((await api('GET', '/environments')).json.environments.length, 1)

  const updates = await readAudit(coordinator, 'environment.update')
  t.equal(updates.length, changes.length + 1)
  t.same(updates[0], { environmentId: id, name: 'web', versionNo: 2, vars: 'A' })
  t.match(updates[9], { vars: 'A,C', toggles: 'git' })
  t.match(updates.at(-1), { fields: 'name,description', previousName: 'web', name: 'shop' })
  t.equal((await readAudit(coordinator, 'environment.create')).length, 2)
  t.match(await readAudit(coordinator, 'environment.default'), [
    { isDefault: true },
    { isDefault: true, previousEnvironmentId: other.id },
    { isDefault: false },
  ])
  t.equal((await readAudit(coordinator, 'environment.delete')).length, 1)
  t.notMatch(JSON.stringify(await readAudit(coordinator, 'environment.create')), /secret of npm/)
})

t.test('refusals', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api } = coordinator
  const { id } = (await api('POST', '/environments', { name: 'web' })).json.environment
  const path = `/environments/${id}`
  const file = { path: '~/a', content: 'a' }
  const refused: [method: string, path: string, body: object | undefined, status: number, code: string][] = [
    ['POST', '/environments', { name: 'web' }, 409, 'name_taken'],
    ['POST', '/environments', { name: 'env_x' }, 400, 'invalid_name'],
    ['POST', '/environments', { name: 'none' }, 400, 'invalid_name'],
    ['POST', '/environments', { name: 'a', repos: [{ repo: 'gitlab.com/b' }] }, 400, 'bad_request'],
    ['POST', '/environments', { name: 'a b' }, 400, 'invalid_name'],
    ['POST', '/environments', {}, 400, 'invalid_name'],
    ['POST', '/environments', { name: 'a', vars: { '1': 'a' } }, 400, 'invalid_env'],
    ['POST', '/environments', { name: 'a', vars: { A: text(70_000) } }, 400, 'environment_too_large'],
    ['POST', '/environments', { name: 'a', files: [file, file] }, 400, 'bad_request'],
    ['POST', '/environments', { name: 'a', files: [{ path: '~/../b', content: '' }] }, 400, 'bad_request'],
    ['POST', '/environments', { name: 'a', repos: [{ repo: 'http://a/b' }] }, 400, 'bad_request'],
    ['POST', '/environments', { name: 'a', repos: [{ repo: 'a/b' }, { repo: 'c/b' }] }, 400, 'bad_request'],
    ['POST', '/environments', { name: 'a', unknown: 1 }, 400, 'bad_request'],
    ['PATCH', path, {}, 400, 'bad_request'],
    ['PATCH', path, { files: [{ ...file, content: text(1_100_000) }] }, 400, 'environment_too_large'],
    ['PATCH', path, { description: text(2_100_000) }, 400, 'bad_request'],
    ['POST', `${path}/vars`, { name: 'A-B', value: '' }, 400, 'invalid_env'],
    ['POST', `${path}/vars`, { name: 'A', value: text(65_536) }, 400, 'bad_request'],
    ['PUT', `${path}/files`, { path: '~/a' }, 400, 'bad_request'],
    ['PUT', `${path}/files`, { ...file, contentBase64: 'AA==' }, 400, 'bad_request'],
    ['PUT', `${path}/files`, { ...file, mode: '0044' }, 400, 'bad_request'],
    ['PUT', `${path}/files`, { ...file, content: text(1_100_000) }, 400, 'environment_too_large'],
    ['DELETE', `${path}/files`, undefined, 400, 'bad_request'],
    ['POST', `${path}/repos`, { repo: 'https://user:pass@example.com/a' }, 400, 'bad_request'],
    ['DELETE', `${path}/repos`, undefined, 400, 'bad_request'],
    ['POST', `${path}/toggles`, {}, 400, 'bad_request'],
    ['POST', `${path}/toggles`, { unknown: true }, 400, 'bad_request'],
    ['PATCH', path, { toggles: { unknown: true } }, 400, 'bad_request'],
    ['POST', '/boxes', { environment: 'none' }, 404, 'not_found'],
    ['POST', '/boxes', { environment: UNKNOWN }, 404, 'not_found'],
  ]
  const ofEach: [method: string, path: string, body?: object][] = [
    ['PATCH', '', { name: 'b' }],
    ['DELETE', ''],
    ['POST', '/default'],
    ['POST', '/toggles', { git: true }],
    ['POST', '/vars', { name: 'A', value: '' }],
    ['DELETE', '/vars/A'],
    ['PUT', '/files', file],
    ['DELETE', '/files?path=~/a'],
    ['POST', '/repos', { repo: 'a/b' }],
    ['DELETE', '/repos?repo=a/b'],
    ['POST', '/upgrade'],
  ]
  for (const unknown of [UNKNOWN, 'web', 'env_'])
    for (const [method, suffix, body] of ofEach)
      refused.push([method, `/environments/${unknown}${suffix}`, body, 404, 'not_found'])
  for (const [method, route, body, status, code] of refused)
    t.match(await api(method, route, body), { status, json: { error: code } }, `${method} ${route}`)
  t.match((await api('GET', '/environments')).json.environments, [{ name: 'web', latestVersionNo: 1 }])

  // Who may use the routes is in the tables of docs/access.md. A contractor may use environments by name.
  const contractor = await createUserKey(coordinator, 'contractor')
  const readOnly = await createLimitedKey(coordinator, { access: { workspace: 'read', boxes: 'none' } })
  t.match(await api('GET', '/environments', undefined, { key: contractor }), { status: 403 })
  t.match(await api('GET', '/environments', undefined, { key: readOnly }), { status: 200 })
  t.match(await api('POST', `${path}/default`, undefined, { key: readOnly }), {
    status: 403,
    json: { error: 'key_access_denied', area: 'workspace', level: 'write' },
  })
  t.match(await api('POST', '/boxes', { environment: 'web' }, { key: contractor }), {
    status: 202,
    json: { box: { environmentId: id, restricted: true } },
  })

  for (let n = 1; n < LIMITS.environments; n++) await api('POST', '/environments', { name: `e${n}` })
  t.match(await api('POST', '/environments', { name: 'one-more' }), {
    status: 409,
    json: { error: 'environment_limit', limit: LIMITS.environments },
  })
})

t.test('new boxes, forks and boxes from snapshots get a version', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api } = coordinator
  const add = async (body: object) => (await api('POST', '/environments', body)).json.environment
  const web = await add({ name: 'web', vars: { A: '1', B: '1' }, isDefault: true })
  const strict = await add({ name: 'strict', toggles: { restricted: true } })
  const readBox = async (id: string) => (await api('GET', `/boxes/${id}`)).json
  const create = async (body: object) => (await api('POST', '/boxes', body)).json.box

  const boxId = await createRunningBox(coordinator, { name: 'fig', env: { B: '2' } })
  t.match(await readBox(boxId), {
    box: { environmentId: web.id, environmentVersionNo: 1, envVars: [{ name: 'B', value: '2' }] },
    environment: { id: web.id, name: 'web', versionNo: 1, latestVersionNo: 1, deletedAt: null },
    restricted: false,
  })
  t.equal((await create({ environment: null })).environmentId, null)
  t.match(await create({ environment: 'strict' }), { environmentId: strict.id, restricted: true })
  t.match(await create({ environment: strict.id }), { environmentId: strict.id })

  await api('POST', `/environments/${web.id}/vars`, { name: 'A', value: '2' })
  t.match((await readBox(boxId)).environment, { versionNo: 1, latestVersionNo: 2 })
  const snapshotId = await takeSnapshot(coordinator, boxId)
  const template = (await api('POST', `/boxes/${boxId}/template`, { name: 'base' })).json.snapshot
  await waitForStatus(coordinator, template.id, 'available')
  const versions: [what: string, box: Promise<Record<string, unknown>>, expected: object][] = [
    [
      'fork',
      api('POST', `/boxes/${boxId}/fork`, {}).then(({ json }) => json.box),
      { environmentVersionNo: 1 },
    ],
    [
      'fork with another environment',
      api('POST', `/boxes/${boxId}/fork`, { environment: 'strict' }).then(({ json }) => json.box),
      { environmentId: strict.id, restricted: true },
    ],
    ['snapshot', create({ fromSnapshotId: snapshotId }), { environmentId: web.id, environmentVersionNo: 1 }],
    ['template', create({ fromTemplate: 'base' }), { environmentId: web.id, environmentVersionNo: 1 }],
    ['named', create({ fromTemplate: 'base', environment: 'web' }), { environmentVersionNo: 2 }],
    ['none', create({ fromTemplate: 'base', environment: null }), { environmentId: null }],
    [
      'restore',
      api('POST', `/snapshots/${snapshotId}/restore`, {}).then(({ json }) => json.box),
      { environmentVersionNo: 1 },
    ],
    [
      'restore without an environment',
      api('POST', `/snapshots/${snapshotId}/restore`, { environment: null }).then(({ json }) => json.box),
      { environmentId: null, environmentVersionNo: null },
    ],
  ]
  for (const [what, box, expected] of versions) t.match(await box, expected, what)

  const environments = (await api('GET', '/environments')).json.environments
  t.match(environments, [
    { name: 'strict', boxCount: 3 },
    { name: 'web', boxCount: 6 },
  ])
  t.equal((await api('DELETE', `/environments/${web.id}`)).status, 204)
  t.equal((await create({})).environmentId, null, 'there is no default any more')
  t.match((await readBox(boxId)).environment, { name: 'web', versionNo: 1, deletedAt: /Z$/ })
  t.match(await create({ fromSnapshotId: snapshotId }), { environmentId: web.id, environmentVersionNo: 1 })
  t.match(await create({ environment: 'web' }), undefined)
})

t.test('an upgrade pins the boxes to the latest version', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, instance, waitForState } = coordinator
  const { db } = instance.context
  const web = (await api('POST', '/environments', { name: 'web', vars: { A: '1' } })).json.environment
  const running = await createRunningBox(coordinator, { name: 'fig', environment: 'web' })
  const asleep = await createRunningBox(coordinator, { name: 'plum', environment: 'web' })
  const failed = await createRunningBox(coordinator, { name: 'kiwi', environment: 'web' })
  await createRunningBox(coordinator, { name: 'lime' })
  await api('POST', `/boxes/${asleep}/suspend`)
  await waitForState(asleep, 'suspended')
  await db.updateTable('boxes').set({ observed_state: 'provision_failed' }).where('id', '=', failed).execute()
  await api('PATCH', `/environments/${web.id}`, { vars: { A: '2' }, repos: [{ repo: 'a/b' }] })
  const newest = await createRunningBox(coordinator, { name: 'cherry', environment: 'web' })
  const changed: string[] = []
  subscribeToVariableChanges(db, (boxId) => changed.push(boxId), { onGap: () => undefined })
  await api('POST', `/boxes/${running}/port-shares`, { port: 80, access: 'public' })

  const { status, json } = await api('POST', `/environments/${web.id}/upgrade`)
  t.equal(status, 200)
  t.equal(json.latestVersionNo, 2)
  t.same(new Set(json.upgraded.map((box: { boxId: string }) => box.boxId)), new Set([running, asleep]))
  t.match(json.upgraded, [{ versionNo: 1 }, { versionNo: 1 }])
  const skipped = new Map(
    json.skipped.map((box: { boxId: string; reason: string }) => [box.boxId, box.reason]),
  )
  t.same(
    skipped,
    new Map([
      [failed, 'box_failed'],
      [newest, 'up_to_date'],
    ]),
  )
  await waitUntil('both boxes are announced', () => new Set(changed).size === 2)
  t.same(new Set(changed), new Set([running, asleep]))
  t.match((await api('GET', `/boxes/${asleep}`)).json, {
    environment: { versionNo: 2, latestVersionNo: 2 },
    restricted: false,
  })
  const row = await db.selectFrom('boxes').selectAll().where('id', '=', running).executeTakeFirstOrThrow()
  t.same(JSON.parse(row.environment_vars), [{ name: 'A', value: '2' }])
  t.match(await db.selectFrom('box_repos').selectAll().where('box_id', '=', running).execute(), [
    { repo: 'a/b', path: '~/b' },
  ])
  t.match(await readAudit(coordinator, 'environment.upgrade'), [{ versionNo: 2, boxCount: 2 }])

  // A restricted version restricts the boxes, and a later one does not end that.
  await api('POST', `/environments/${web.id}/toggles`, { restricted: true })
  t.equal((await api('POST', `/environments/${web.id}/upgrade`)).json.upgraded.length, 3)
  t.equal((await api('GET', `/boxes/${running}`)).json.restricted, true)
  t.same((await api('GET', `/boxes/${running}/port-shares`)).json.shares, [])
  t.equal((await readAudit(coordinator, 'box.restrict')).length, 3)
  await api('POST', `/environments/${web.id}/toggles`, { restricted: false })
  await api('POST', `/environments/${web.id}/upgrade`)
  t.match((await api('GET', `/boxes/${running}`)).json, { restricted: true, environment: { versionNo: 4 } })
})

t.test('secrets of boxes: channels, forks, snapshots and restricted boxes', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, instance } = coordinator
  const { db } = instance.context
  const addSecret = async (name: string, grants: object[] = []) =>
    (await api('POST', '/secrets', { name, value: `value of ${name}`, hosts: ['api.example.com'], grants }))
      .json.secret
  const listMounts = async (boxId: string) =>
    (await api('GET', `/boxes/${boxId}/secrets`)).json.mounts.map(
      (mount: { envName: string }) => mount.envName,
    )
  const readVariables = async (boxId: string) => {
    const row = await db.selectFrom('boxes').selectAll().where('id', '=', boxId).executeTakeFirstOrThrow()
    return JSON.parse(row.mount_vars)
  }
  const token = await addSecret('GITHUB_TOKEN')
  const key = await addSecret('SHOP_KEY')
  await api('POST', '/environments', { name: 'web', toggles: { git: true } })
  await api('POST', '/environments', { name: 'strict', toggles: { git: true, restricted: true } })

  const boxId = await createRunningBox(coordinator, { name: 'fig', environment: 'web' })
  t.same(await listMounts(boxId), ['GITHUB_TOKEN'], 'the channel of the environment')
  t.same(await readVariables(boxId), [{ name: 'GITHUB_TOKEN', value: token.placeholder }])
  t.equal((await api('POST', `/boxes/${boxId}/secrets`, { secretId: key.id, envName: 'KEY' })).status, 201)
  const snapshotId = await takeSnapshot(coordinator, boxId)
  const carried = ['GITHUB_TOKEN', 'KEY']
  const fork = (await api('POST', `/boxes/${boxId}/fork`, {})).json.box
  t.same((await listMounts(fork.id)).sort(), carried)
  t.same((await readVariables(fork.id)).length, 2)
  const restored = (await api('POST', `/snapshots/${snapshotId}/restore`, { environment: null })).json.box
  t.same((await listMounts(restored.id)).sort(), carried)

  for (const [what, path, body] of [
    ['a fork', `/boxes/${boxId}/fork`, { environment: 'strict' }],
    ['a restored box', `/snapshots/${snapshotId}/restore`, { environment: 'strict' }],
    ['a new box', '/boxes', { environment: 'strict' }],
    ['a requested restriction', '/boxes', { environment: 'web', restricted: true }],
  ] as const) {
    const { box } = (await api('POST', path, body)).json
    t.equal(box.restricted, true, what)
    t.same(await listMounts(box.id), [], what)
  }

  // A grant of another box narrows the secret, and is not passed on.
  await api('POST', `/secrets/${key.id}/grants`, { boxId })
  t.same(await listMounts(boxId), carried.toSorted())
  t.same(await listMounts(fork.id), ['GITHUB_TOKEN'])
  const later = (await api('POST', '/boxes', { fromSnapshotId: snapshotId })).json.box
  t.same(await listMounts(later.id), ['GITHUB_TOKEN'])

  // An upgrade mounts what a channel adds, and a restricted version unmounts everything.
  const environments = (await api('GET', '/environments')).json.environments
  const web = environments.find(({ name }: { name: string }) => name === 'web')
  await addSecret('ANTHROPIC_API_KEY')
  await api('POST', `/environments/${web.id}/toggles`, { codingAgents: true, git: false })
  await api('POST', `/environments/${web.id}/upgrade`)
  t.same((await listMounts(boxId)).sort(), ['ANTHROPIC_API_KEY', 'GITHUB_TOKEN', 'KEY'])
  t.equal((await readVariables(boxId)).length, 3)
  await api('POST', `/environments/${web.id}/toggles`, { restricted: true })
  await api('POST', `/environments/${web.id}/upgrade`)
  t.same(await listMounts(boxId), [])
  t.same(await readVariables(boxId), [])
})
