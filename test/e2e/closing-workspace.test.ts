// A workspace is closed, refuses what would keep it alive, is reopened, closed again, and deleted completely.
import t from 'tap'
import { REFUSED_WHILE_CLOSING } from '../../coordinator/identity/workspaces/routes.ts'
import { newId } from '../../shared/ids.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { serveImagesInOneRegion } from '../support/fake-images.ts'
import { FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { expandDocument } from '../support/openapi-document.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { readAllRows } from '../support/workspace-rows.ts'

const DAY_MS = 24 * 60 * 60 * 1000

t.test('the life of a workspace', async (t) => {
  let offset = 0
  const infra = new FakeInfrastructure()
  const coordinator = await startTestCoordinator(t, {
    infra,
    providers: serveImagesInOneRegion(infra),
    clock: { now: () => Date.now() + offset },
    env: {
      BOXWOOD_FINAL_SNAPSHOTS: 'on',
      BOXWOOD_OIDC_ISSUER: 'https://oidc.example.com',
      BOXWOOD_AWS_TEMPLATE_URL: 'https://templates.s3.amazonaws.com/role.yaml',
      BOXWOOD_PUBLIC_URL: 'https://boxes.example.com',
    },
  })
  const { api, instance } = coordinator
  const { db, scheduler } = instance.context
  const first = await createTestSession(coordinator)
  await db.updateTable('users').set({ email: 'root@example.com' }).where('id', '=', first.userId).execute()
  const firstBox = (await api('GET', '/boxes')).json.boxes[0].id
  await coordinator.waitForState(firstBox, 'running')

  const created = await api('POST', '/workspaces', { name: 'Lab' }, first)
  const workspaceId: string = created.json.workspace.id
  const switched = await api('POST', '/session/workspace', { workspaceId }, first)
  t.equal(switched.status, 200)
  const session = { key: null, headers: { cookie: switched.headers.get('set-cookie')?.split(';')[0] ?? '' } }
  const userId: string = switched.json.user.id
  const memberId = newId('user')
  await db
    .insertInto('users')
    .values({
      ...{ id: memberId, workspace_id: workspaceId, email: null, name: 'Ada', role: 'member' },
      ...{ created_at: Date.now(), joined_at: Date.now() },
    })
    .execute()
  const send = (method: string, path: string, body?: unknown) => api(method, path, body, session)
  const key = (await send('POST', '/keys', { name: 'a', user: null })).json
  const withKey = { key: key.secret as string }

  const waitForState = (id: string, state: string) =>
    waitUntil(`box ${id} is ${state}`, async () => {
      const { json } = await api('GET', `/boxes/${id}`, undefined, withKey)
      return json.box.observedState === state
    })
  const create = async (name: string) => (await send('POST', '/boxes', { name })).json.box.id as string
  const [fig, plum] = [await create('fig'), await create('plum')]
  for (const id of [fig, plum]) await waitForState(id, 'running')
  await send('POST', `/boxes/${plum}/suspend`)
  await waitForState(plum, 'suspended')
  const snapshot: string = (await send('POST', '/snapshots', { boxId: fig, name: 'a' })).json.snapshot.id
  const environment: string = (await send('POST', '/environments', { name: 'a' })).json.environment.id
  const secret: string = (await send('POST', '/secrets', { name: 'A', value: 'a' })).json.secret.id
  await waitUntil('no job is left', async () => {
    const [jobs, snapshotJobs] = await Promise.all([
      db.selectFrom('jobs').select('box_id').execute(),
      db.selectFrom('snapshot_jobs').select('snapshot_id').execute(),
    ])
    return jobs.length + snapshotJobs.length === 0
  })

  t.test('closing needs the name, and says until when it can be reopened', async (t) => {
    for (const name of ['lab', ''])
      t.match(await send('POST', '/workspace/close', { name }), {
        status: 400,
        json: { error: 'bad_request' },
      })
    const before = Date.now()
    const { json, status } = await send('POST', '/workspace/close', { name: 'Lab' })
    t.equal(status, 200)
    const { closingAt, purgeAfter } = json.workspace
    t.equal(Date.parse(purgeAfter) - Date.parse(closingAt), 30 * DAY_MS)
    t.ok(Date.parse(closingAt) >= before)
    t.same((await send('POST', '/workspace/close', { name: 'Lab' })).json, json, 'again, without effect')
    t.match((await send('GET', '/me')).json, {
      customer: { status: 'closing' },
      workspace: { closingAt, purgeAfter },
    })
  })

  t.test('it refuses exactly what the document lists, and writes nothing', async (t) => {
    // payments.test.ts closes a workspace on a coordinator with payments.
    type Tested = Exclude<(typeof REFUSED_WHILE_CLOSING)[number], 'POST /billing/checkout'>
    const requests: Record<Tested, [path: string, body?: object]> = {
      'POST /boxes': ['/boxes', {}],
      'PATCH /boxes/{id}': [`/boxes/${fig}`, { env: { A: '1' } }],
      'POST /boxes/{id}/wake': [`/boxes/${plum}/wake`],
      'POST /boxes/{id}/resize': [`/boxes/${fig}/resize`, { target_tier: 'pro' }],
      'POST /boxes/{id}/region': [`/boxes/${fig}/region`, { region: 'eu-central-1' }],
      'POST /boxes/{id}/owner': [`/boxes/${fig}/owner`, { ownerUserId: memberId }],
      'POST /boxes/{id}/fork': [`/boxes/${fig}/fork`, {}],
      'POST /boxes/{id}/template': [`/boxes/${fig}/template`, { name: 'b' }],
      'POST /boxes/{id}/tickets': [`/boxes/${fig}/tickets`, {}],
      'POST /boxes/{id}/port-shares': [`/boxes/${fig}/port-shares`, { port: 3000 }],
      'POST /machines': ['/machines', {}],
      'PATCH /agents/rollout': ['/agents/rollout', { share: 50 }],
      'POST /snapshots': ['/snapshots', { boxId: fig, name: 'b' }],
      'POST /snapshots/{id}/restore': [`/snapshots/${snapshot}/restore`, {}],
      'POST /snapshots/{id}/template': [`/snapshots/${snapshot}/template`, { name: 'b' }],
      'POST /images': ['/images', { image: 'debian:12' }],
      'POST /environments': ['/environments', { name: 'b' }],
      'PATCH /environments/{id}': [`/environments/${environment}`, { name: 'b' }],
      'POST /environments/{id}/default': [`/environments/${environment}/default`],
      'POST /environments/{id}/toggles': [`/environments/${environment}/toggles`, { git: true }],
      'POST /environments/{id}/vars': [`/environments/${environment}/vars`, { name: 'A', value: '' }],
      'PUT /environments/{id}/files': [`/environments/${environment}/files`, { path: '~/a', content: '' }],
      'POST /environments/{id}/repos': [`/environments/${environment}/repos`, { repo: 'a/b' }],
      'POST /environments/{id}/upgrade': [`/environments/${environment}/upgrade`],
      'POST /secrets': ['/secrets', { name: 'B', value: 'b' }],
      'POST /secrets/{id}/grants': [`/secrets/${secret}/grants`, { boxId: fig }],
      'POST /boxes/{id}/secrets': [`/boxes/${fig}/secrets`, { secretId: secret, envName: 'A' }],
      'POST /keys': ['/keys', { name: 'b' }],
      'POST /members': ['/members', { email: 'ada@example.com', role: 'member' }],
      'PATCH /workspace/policies': ['/workspace/policies', { memberBoxLimit: 3 }],
      'PUT /audit/sink': ['/audit/sink', { url: 'https://siem.example.com/' }],
      'POST /aws-roles': ['/aws-roles', { roleArn: 'arn:aws:iam::123456789012:role/deploy' }],
      'POST /aws-connect': ['/aws-connect', {}],
    }
    const { json: document } = await coordinator.send('GET', '/openapi.json')
    // A request to the edge is refused like the wake that it needs.
    const controlPaths = Object.entries(expandDocument(document).paths).filter(([path]) =>
      path.startsWith('/api/v1'),
    )
    const documented = controlPaths.flatMap(([path, methods]) =>
      Object.entries(
        methods as Record<string, { responses?: Record<string, { 'x-error-codes'?: string[] }> }>,
      )
        .filter(([, { responses }]) => responses?.['409']?.['x-error-codes']?.includes('workspace_closing'))
        .map(([method]) => `${method.toUpperCase()} ${path.replace('/api/v1', '')}`),
    )
    t.same(new Set(documented), new Set([...REFUSED_WHILE_CLOSING, 'POST /workspace/reopen']))
    // Their rows have the time of the last use.
    const readRows = async () => ({ ...(await readAllRows(db)), sessions: [], api_keys: [], users: [] })
    const countUsers = async () => (await readAllRows(db)).users?.length
    const before = [await readRows(), await countUsers()]
    for (const [route, [path, body]] of Object.entries(requests)) {
      const response = await send(route.split(' ')[0] ?? '', path, body)
      t.match(response, { status: 409, json: { error: 'workspace_closing' } }, route)
    }
    t.same([await readRows(), await countUsers()], before)
  })

  t.test('reading, suspending, deleting, reporting and revoking continue to work', async (t) => {
    t.equal((await send('GET', '/boxes')).json.boxes.length, 2)
    t.equal((await send('POST', `/boxes/${plum}/suspend`)).status, 202)
    t.equal((await api('POST', '/audit', { kind: 'exec', boxId: fig }, withKey)).status, 201)
    t.equal((await send('PATCH', '/workspace', { name: 'Lab 2' })).status, 200)
    const { json } = await send('GET', '/members')
    t.match(json.members, [{ id: userId, email: 'root@example.com', role: 'owner' }])
    t.match(await send('DELETE', `/members/${userId}`), { status: 409, json: { error: 'last_owner' } })
  })

  t.test('reopened, it works again', async (t) => {
    const { json } = await send('POST', '/workspace/reopen')
    t.match(json.workspace, { closingAt: null, purgeAfter: null, name: 'Lab 2' })
    t.equal((await send('POST', '/workspace/reopen')).status, 200)
    t.equal((await send('POST', `/boxes/${plum}/wake`)).status, 202)
    await waitForState(plum, 'running')
    const { json: audit } = await send('GET', '/audit?kind=workspace.create,workspace.close,workspace.reopen')
    t.same(audit.events.map(({ kind }: { kind: string }) => kind).sort(), [
      'workspace.close',
      'workspace.create',
      'workspace.reopen',
    ])
    t.same(await db.selectFrom('schedules').selectAll().where('target_id', '=', workspaceId).execute(), [])
  })

  t.test('after purgeAfter nothing of it is left, and nothing of another workspace is deleted', async (t) => {
    await send('POST', '/workspace/close', { name: 'Lab 2' })
    offset = 31 * DAY_MS
    scheduler.runDue()
    await waitUntil('the workspace is deleted', async () => {
      const rows = await db.selectFrom('workspaces').select('id').where('id', '=', workspaceId).execute()
      return rows.length === 0
    })
    t.equal((await api('GET', '/me', undefined, withKey)).status, 401)
    t.same([...infra.machines.keys()], [firstBox])
    t.equal(infra.archives.size, 0, 'no final snapshot is left')
    t.same(
      infra.calls.filter((call) => call.startsWith('removeArchives')),
      [`removeArchives ${workspaceId}`],
    )
    const rows = await readAllRows(db)
    for (const id of [workspaceId, userId, fig, plum, snapshot, key.key.id])
      for (const [table, texts] of Object.entries(rows))
        t.notOk(
          texts.some((text) => text.includes(id)),
          `${table} does not have ${id}`,
        )
    t.equal((await api('GET', '/boxes')).json.boxes[0].id, firstBox)
  })
})
