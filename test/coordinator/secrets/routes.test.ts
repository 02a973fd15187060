// The answers of the routes of secrets (spec §2.8, §4.10, §7.1).
import t, { type Test } from 'tap'
import type { BrokerCut } from '../../../coordinator/secrets/types.ts'
import { PLACEHOLDER_PATTERN, type Secret } from '../../../shared/api/secrets.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { fillSecrets } from '../../support/fill-secrets.ts'
import { createLimitedKey } from '../../support/limited-key.ts'
import { createTestSession } from '../../support/session.ts'
import { createTestClock } from '../../support/workspace.ts'
import { readAllRows } from '../../support/workspace-rows.ts'

const VALUE = 'value-that-nobody-may-read'

async function start(t: Test) {
  const clock = createTestClock(Date.now())
  const coordinator = await startTestCoordinator(t, { clock })
  const { api, instance } = coordinator
  const { db, secretBroker } = instance.context
  const cuts: BrokerCut[] = []
  secretBroker.events.on('cut', (cut) => cuts.push(cut))
  const texts: string[] = []
  const send = async (...request: Parameters<typeof api>) => {
    clock.advance(1)
    const response = await api(...request)
    texts.push(response.text)
    return response
  }
  const createBox = async (body: object = {}): Promise<string> =>
    (await send('POST', '/boxes', body)).json.box.id
  const createSecret = async (body: object): Promise<Secret> =>
    (await send('POST', '/secrets', { value: VALUE, ...body })).json.secret
  const mount = async (boxId: string, secretId: string, envName: string) =>
    (await send('POST', `/boxes/${boxId}/secrets`, { secretId, envName })).json.mount
  const listMounted = async (boxId: string): Promise<string[]> =>
    (await send('GET', `/boxes/${boxId}/secrets`)).json.mounts.map(
      ({ envName }: { envName: string }) => envName,
    )
  const findSecret = async (id: string): Promise<Secret> =>
    (await send('GET', '/secrets')).json.secrets.find((secret: Secret) => secret.id === id)
  const listEvents = async (): Promise<object[]> =>
    (await send('GET', '/audit?limit=1000')).json.events
      .filter(({ kind }: { kind: string }) => kind.startsWith('secret.'))
      .map(({ kind, boxId, detail }: { kind: string; boxId: string; detail: object }) => ({
        kind,
        boxId,
        ...detail,
      }))
      .reverse()
  const takeCuts = () => cuts.splice(0)
  return {
    ...{ coordinator, send, db, clock, texts, secretBroker, takeCuts, listEvents },
    ...{ createBox, createSecret, mount, listMounted, findSecret },
  }
}

t.test('a secret from its creation to its deletion', async (t) => {
  const { send, clock, createBox, mount, findSecret, listMounted, listEvents, takeCuts, secretBroker, db } =
    await start(t)
  const box = await createBox({ name: 'fig' })
  const created = await send('POST', '/secrets', {
    name: 'API_TOKEN',
    value: VALUE,
    description: 'for tests',
    hosts: ['API.example.com.', '*.example.net'],
  })
  t.equal(created.status, 201)
  const { id, placeholder } = created.json.secret
  const expected = {
    id,
    name: 'API_TOKEN',
    description: 'for tests',
    hosts: ['api.example.com', '*.example.net'],
    in: ['header'],
    placeholder,
    mountCount: 0,
    scope: 'workspace',
    grants: [],
    createdAt: new Date(clock.now()).toISOString(),
    updatedAt: new Date(clock.now()).toISOString(),
    lastRotatedAt: null,
  }
  t.same(created.json, { secret: expected })
  t.match(id, /^sec_/)
  t.match(placeholder, new RegExp(`^${PLACEHOLDER_PATTERN.source}$`))
  t.same((await send('GET', '/secrets')).json, { secrets: [expected] })

  const mounted = await mount(box, id, 'TOKEN')
  t.same(mounted, {
    id: mounted.id,
    envName: 'TOKEN',
    secret: { id, name: 'API_TOKEN', placeholder, hosts: expected.hosts },
  })
  t.match(mounted.id, /^smt_/)
  t.same((await send('GET', `/boxes/${box}/secrets`)).json, {
    mounts: [mounted],
    broker: { state: 'unknown', message: null, checkedAt: null },
  })
  t.equal((await findSecret(id)).mountCount, 1)
  const row = await db
    .selectFrom('boxes')
    .select('mount_vars')
    .where('id', '=', box)
    .executeTakeFirstOrThrow()
  t.same(JSON.parse(row.mount_vars), [{ name: 'TOKEN', value: placeholder }])
  const findValue = async (host: string) =>
    (await secretBroker.find(box, host))?.secrets.map((secret) => secret.open()?.reveal()) ?? null
  t.same(await findValue('api.example.com'), [VALUE])
  t.same(await findValue('example.net'), null)

  const getVersion = async () =>
    (await secretBroker.find(box, 'api.example.com'))?.secrets.map(({ version }) => version)[0]
  const version = await getVersion()
  t.ok(version)
  t.equal(await getVersion(), version, 'the version of a stored value')
  const rotated = await send('PATCH', `/secrets/${id}`, { value: `${VALUE}-2` })
  t.not(await getVersion(), version, 'a new value has another version')
  t.same(rotated.json.secret, {
    ...expected,
    mountCount: 1,
    updatedAt: new Date(clock.now()).toISOString(),
    lastRotatedAt: new Date(clock.now()).toISOString(),
  })
  t.same(await findValue('api.example.com'), [`${VALUE}-2`])
  t.same(takeCuts(), [], 'a new value applies to the next request')

  const hosts = ['*.example.com', 'a.example.net']
  t.match((await send('PATCH', `/secrets/${id}`, { hosts, description: null })).json.secret, {
    hosts,
    description: null,
  })
  t.same(takeCuts(), [{ boxId: box, patterns: ['*.example.net'] }])
  t.same(await findValue('b.example.net'), null)

  t.match(await send('DELETE', `/secrets/${id}`), { status: 204, text: '' })
  t.same(takeCuts(), [{ boxId: box, patterns: hosts }])
  t.same(await listMounted(box), [])
  t.equal(await secretBroker.find(box, 'a.example.com'), null)
  t.same((await send('GET', '/secrets')).json, { secrets: [] })
  const common = { secretId: id, name: 'API_TOKEN' }
  t.same(await listEvents(), [
    {
      ...{ kind: 'secret.create', boxId: null, ...common },
      ...{ hosts: 'api.example.com, *.example.net', locations: 'header' },
    },
    {
      kind: 'secret.mount',
      boxId: box,
      ...common,
      envName: 'TOKEN',
      hosts: 'api.example.com, *.example.net',
    },
    { kind: 'secret.rotate', boxId: null, ...common },
    {
      ...{ kind: 'secret.update', boxId: null, ...common, description: true },
      ...{ addedHosts: '*.example.com, a.example.net', removedHosts: 'api.example.com, *.example.net' },
    },
    { kind: 'secret.unmount', boxId: box, ...common, envName: 'TOKEN', reason: 'the secret was deleted' },
    { kind: 'secret.delete', boxId: null, ...common },
  ])
})

t.test('a secret is used in the parts of requests that it names', async (t) => {
  const { send, createBox, mount, secretBroker, listEvents } = await start(t)
  const box = await createBox({ name: 'fig' })
  const hosts = ['api.example.com']
  const create = (name: string, body: object) =>
    send('POST', '/secrets', { name, value: VALUE, hosts, ...body })
  const created = await create('TOKEN', { in: ['body', 'header', 'body'] })
  t.match(created, { status: 201, json: { secret: { in: ['header', 'body'] } } }, 'each once, in one order')
  const { id } = created.json.secret
  await mount(box, id, 'TOKEN')
  const findLocations = async () =>
    (await secretBroker.find(box, 'api.example.com'))?.secrets.map((secret) => secret.in)
  t.same(await findLocations(), [['header', 'body']])
  const patch = (locations: unknown) => send('PATCH', `/secrets/${id}`, { in: locations })
  t.match((await patch(['query', 'path'])).json.secret, { in: ['query', 'path'], lastRotatedAt: null })
  t.same(await findLocations(), [['query', 'path']])
  t.equal((await patch(['path', 'query'])).status, 200, 'nothing changes')
  t.match(
    ((await listEvents()) as { kind: string }[]).filter(
      ({ kind }) => kind === 'secret.update' || kind === 'secret.create',
    ),
    [
      { locations: 'header, body' },
      { addedLocations: 'query, path', removedLocations: 'header, body', addedHosts: undefined },
    ],
  )
  const rule = 'must be a list of one or more of header, query, path, body'
  for (const locations of [[], ['cookie'], 'header', null, ['header', 'query', 'path', 'body', 'body']])
    t.match(await patch(locations), {
      status: 400,
      json: { error: 'bad_request', message: new RegExp(rule) },
    })
  t.match(
    await send('POST', `/boxes/${box}/secrets`, {
      ...{ name: 'OTHER', value: VALUE, envName: 'OTHER', hosts, in: ['query'] },
    }),
    { status: 201 },
  )
  t.match((await send('GET', '/secrets')).json.secrets[0], { name: 'OTHER', in: ['query'] })
})

t.test('a value may have several lines, and no other control characters', async (t) => {
  const { send, createBox, mount, secretBroker } = await start(t)
  const box = await createBox({ name: 'fig' })
  const value = '-----BEGIN KEY-----\nabc\r\n\tdef\n-----END KEY-----\n'
  const created = await send('POST', '/secrets', { name: 'KEY', value, hosts: ['api.example.com'] })
  t.equal(created.status, 201)
  await mount(box, created.json.secret.id, 'KEY')
  const found = await secretBroker.find(box, 'api.example.com')
  t.same(
    found?.secrets.map((secret) => secret.open()?.reveal()),
    [value],
  )
  for (const char of ['\0', '\u0007', '\u001b', '\u007f', '\u0085'])
    t.match(
      await send('POST', '/secrets', { name: 'OTHER', value: `a${char}b` }),
      {
        status: 400,
        json: { error: 'bad_request', message: /without control characters other than tabs and line breaks/ },
      },
      JSON.stringify(char),
    )
})

t.test('grants limit the boxes of a secret', async (t) => {
  const {
    coordinator,
    send,
    db,
    createBox,
    createSecret,
    mount,
    findSecret,
    listMounted,
    takeCuts,
    listEvents,
    secretBroker,
  } = await start(t)
  const [fig, plum] = [await createBox({ name: 'fig' }), await createBox({ name: 'plum' })]
  const { id } = await createSecret({ name: 'TOKEN', hosts: ['api.example.com'] })
  for (const box of [fig, plum]) await mount(box, id, 'TOKEN')
  takeCuts()
  const grant = (body: object) => send('POST', `/secrets/${id}/grants`, body)

  const ofFig = await grant({ boxId: fig })
  t.equal(ofFig.status, 201)
  const { grant: figGrant } = ofFig.json
  t.match(figGrant, { id: /^sgr_/, boxId: fig, hostname: 'fig', userId: null, email: null })
  t.same(
    takeCuts(),
    [{ boxId: plum, patterns: ['api.example.com'] }],
    'the first grant unmounts it elsewhere',
  )
  t.same([await listMounted(fig), await listMounted(plum)], [['TOKEN'], []])
  t.same((await grant({ boxId: fig })).json, { grant: figGrant }, 'an existing grant is returned')
  t.match(await findSecret(id), { scope: 'granted', grants: [figGrant], mountCount: 1 })
  t.match(await send('POST', `/boxes/${plum}/secrets`, { secretId: id, envName: 'TOKEN' }), {
    status: 403,
    json: { error: 'secret_not_granted' },
  })
  t.same((await send('GET', `/secrets?box=${plum}`)).json.secrets, [])
  t.same((await send('GET', `/secrets?box=${fig}`)).json.secrets.length, 1)

  const { userId = '' } = coordinator.instance.owner ?? {}
  const email = 'root@example.com'
  await db.updateTable('users').set({ email }).execute()
  const ofOwner = (await grant({ email: email.toUpperCase() })).json.grant
  t.match(ofOwner, { boxId: null, hostname: null, userId, email })
  t.same((await grant({ userId })).json, { grant: ofOwner })
  await mount(plum, id, 'TOKEN')
  t.same(await listMounted(plum), ['TOKEN'])

  t.match(await send('DELETE', `/secrets/${id}/grants/${ofOwner.id}`), { status: 204 })
  t.same(takeCuts(), [{ boxId: plum, patterns: ['api.example.com'] }])
  t.same([await listMounted(fig), await listMounted(plum)], [['TOKEN'], []])
  t.match(await send('DELETE', `/secrets/${id}/grants/${figGrant.id}`), { status: 204 })
  t.match(await findSecret(id), { scope: 'granted', grants: [], mountCount: 0 })
  t.same(takeCuts(), [{ boxId: fig, patterns: ['api.example.com'] }])
  for (const box of [fig, plum]) {
    t.same((await send('GET', `/secrets?box=${box}`)).json.secrets, [])
    t.match(
      await send('POST', `/boxes/${box}/secrets`, { secretId: id, envName: 'TOKEN' }),
      { status: 403, json: { error: 'secret_not_granted' } },
      'without its last grant, no box may use the secret',
    )
  }
  t.match(await send('PATCH', `/secrets/${id}`, { scope: 'workspace' }), {
    status: 200,
    json: { secret: { scope: 'workspace', grants: [] } },
  })
  for (const box of [fig, plum]) await mount(box, id, 'TOKEN')
  const lastGrant = (await grant({ boxId: fig })).json.grant
  await send('DELETE', `/boxes/${fig}`)
  t.equal(await secretBroker.find(fig, 'api.example.com'), null)
  t.match(await findSecret(id), { scope: 'granted', grants: [{ id: lastGrant.id, hostname: 'fig' }] })
  const events = await listEvents()
  t.match(
    events.filter((event) => 'scope' in event || ('reason' in event && event.reason)),
    [
      { kind: 'secret.unmount', boxId: plum, reason: 'no grant covers the box any more' },
      { kind: 'secret.unmount', boxId: plum, reason: 'no grant covers the box any more' },
      { kind: 'secret.unmount', boxId: fig, reason: 'no grant covers the box any more' },
      { kind: 'secret.update', scope: 'workspace' },
      { kind: 'secret.unmount', boxId: plum, reason: 'no grant covers the box any more' },
      { kind: 'secret.unmount', boxId: fig, reason: 'the box was deleted' },
    ],
  )
})

t.test('a secret that is created with a mount or with grants', async (t) => {
  const { send, db, createBox, createSecret, findSecret, listMounted, takeCuts } = await start(t)
  const [fig, plum] = [await createBox({ name: 'fig' }), await createBox({ name: 'plum' })]
  const created = await send('POST', `/boxes/${fig}/secrets`, {
    ...{ name: 'NEW', value: VALUE, envName: 'new_token', hosts: ['a.example.com'], description: 'd' },
  })
  t.equal(created.status, 201)
  const { id, secret } = created.json.mount
  t.match(await findSecret(secret.id), {
    ...{ name: 'NEW', description: 'd', scope: 'granted', mountCount: 1, hosts: ['a.example.com'] },
    grants: [{ boxId: fig, hostname: 'fig' }],
  })
  t.match(await send('DELETE', `/boxes/${fig}/secrets/${id}`), { status: 204 })
  t.same(takeCuts(), [{ boxId: fig, patterns: ['a.example.com'] }])
  t.same(await listMounted(fig), [])
  t.equal((await send('DELETE', `/boxes/${fig}/secrets/${id}`)).status, 204, 'a repeated request')

  const email = 'root@example.com'
  await db.updateTable('users').set({ email }).execute()
  const granted = await createSecret({
    name: 'GRANTED',
    placeholderPrefix: 'xoxb-',
    grants: [{ boxId: plum }, { boxId: fig }, { email }, { boxId: plum }],
  })
  t.match(granted, { scope: 'granted', placeholder: /^xoxb-dcpsec_/ })
  t.same(granted.grants.map(({ hostname, email }) => hostname ?? email).sort(), [email, 'fig', 'plum'].sort())
})

t.test('refusals, each of which writes nothing', async (t) => {
  const { send, db, createBox, createSecret, mount } = await start(t)
  const [fig, plum] = [await createBox({ name: 'fig' }), await createBox({ name: 'plum' })]
  const restricted = await createBox({ restricted: true })
  const deleted = await createBox()
  await send('DELETE', `/boxes/${deleted}`)
  const secret = await createSecret({ name: 'TOKEN' })
  const ofPlum = await createSecret({ name: 'OF_PLUM', grants: [{ boxId: plum }] })
  await mount(fig, secret.id, 'TOKEN')
  const count = async () => {
    const { secrets, secret_grants, secret_mounts, audit_log } = await readAllRows(db)
    return [secrets?.length, secret_grants?.length, secret_mounts?.length, audit_log?.length]
  }
  const post = (body: object) => ['POST', '/secrets', { name: 'NEW', value: VALUE, ...body }] as const
  const patch = (body: object) => ['PATCH', `/secrets/${secret.id}`, body] as const
  const grant = (body: object, id = secret.id) => ['POST', `/secrets/${id}/grants`, body] as const
  const mounting = (body: object, box = fig) =>
    ['POST', `/boxes/${box}/secrets`, { envName: 'NEW', ...body }] as const
  const creating = (body: object, box = fig) => mounting({ name: 'NEW', value: VALUE, ...body }, box)
  const notFound = [404, 'not_found'] as const
  const large = 'x'.repeat(LIMITS.secretValueBytes + 1)
  const unknown = crypto.randomUUID()
  type Case = [request: readonly [string, string, object?], status: number, code: string, message?: RegExp]
  const cases: Case[] = [
    [post({ name: undefined }), 400, 'invalid_name', /^name is required/],
    [post({ name: 'lower' }), 400, 'invalid_name', /^name must be 1 to 128 uppercase/],
    [post({ name: '1A' }), 400, 'invalid_name'],
    [post({ name: 'A'.repeat(129) }), 400, 'invalid_name'],
    [post({ value: undefined }), 400, 'bad_request', /^value is required/],
    [post({ value: 5 }), 400, 'bad_request', /^value must be a string/],
    [post({ value: '' }), 400, 'bad_request', /^value must be 1 byte to 16 KiB/],
    [post({ value: large }), 400, 'bad_request', /^value must be/],
    [post({ value: 'a\u0001b' }), 400, 'bad_request', /^value must be/],
    [post({ value: 'a\ud800b' }), 400, 'bad_request'],
    [post({ value: 'a\u0001b' }), 400, 'bad_request', /^value must be/],
    [post({ value: 'x'.repeat(LIMITS.secretBodyBytes) }), 400, 'bad_request'],
    [post({ other: 1 }), 400, 'bad_request', /^unknown field other/],
    [post({ description: 'x'.repeat(501) }), 400, 'bad_request'],
    [post({ hosts: ['a b'] }), 400, 'invalid_host', /^hosts\[0\] "a b" must be a host name/],
    [post({ hosts: ['*.com'] }), 400, 'invalid_host'],
    [post({ hosts: [5] }), 400, 'invalid_host'],
    [
      post({ hosts: Array.from({ length: 33 }, (_, n) => `h${n}.example.com`) }),
      400,
      'invalid_host',
      /at most 32/,
    ],
    [post({ placeholderPrefix: 'a b' }), 400, 'bad_request'],
    [post({ name: 'TOKEN' }), 409, 'name_taken', /^A secret named TOKEN already exists/],
    [post({ grants: [{}] }), 400, 'bad_request', /exactly one of/],
    [post({ grants: [{ boxId: fig, email: 'a@example.com' }] }), 400, 'bad_request'],
    [post({ grants: [{ boxId: fig }, { boxId: unknown }] }), ...notFound],
    [post({ grants: [{ boxId: deleted }] }), ...notFound],
    [post({ grants: [{ boxId: fig }, { userId: 'usr_0' }] }), 404, 'member_not_found'],
    [post({ grants: [{ email: 'nobody@example.com' }] }), 404, 'member_not_found'],
    [patch({}), 400, 'bad_request', /at least one/],
    [patch({ name: 'OTHER' }), 400, 'bad_request', /^unknown field name/],
    [patch({ hosts: ['127.0.0.1'] }), 400, 'invalid_host'],
    [['PATCH', '/secrets/sec_0', { value: 'a' }], ...notFound],
    [['DELETE', '/secrets/sec_0'], ...notFound],
    [['GET', '/secrets/sec_0/usage'], ...notFound],
    [['GET', `/secrets?box=${unknown}`], ...notFound],
    [['GET', `/secrets?box=${deleted}`], ...notFound],
    [grant({}), 400, 'bad_request', /exactly one of/],
    [grant({ userId: 'usr_0', boxId: fig }), 400, 'bad_request'],
    [grant({ boxId: fig }, 'sec_0'), ...notFound],
    [grant({ boxId: unknown }), ...notFound],
    [grant({ boxId: deleted }), ...notFound],
    [grant({ userId: 'usr_0' }), 404, 'member_not_found'],
    [grant({ email: 'nobody@example.com' }), 404, 'member_not_found'],
    [grant({ email: 'no address' }), 400, 'bad_request'],
    [['DELETE', `/secrets/${secret.id}/grants/${ofPlum.grants[0]?.id}`], ...notFound],
    [['DELETE', `/secrets/sec_0/grants/${ofPlum.grants[0]?.id}`], ...notFound],
    [patch({ scope: 'granted' }), 400, 'bad_request', /must be workspace/],
    [['GET', `/boxes/${deleted}/secrets`], ...notFound],
    [['GET', `/boxes/${unknown}/secrets`], ...notFound],
    [mounting({}), 400, 'bad_request', /^body must have either/],
    [
      mounting({ secretId: secret.id, name: 'NEW', value: VALUE }),
      400,
      'bad_request',
      /^body must have either/,
    ],
    [mounting({ name: 'NEW' }), 400, 'bad_request', /^body must have either/],
    [mounting({ secretId: 'sec_0' }), ...notFound],
    [mounting({ secretId: secret.id }, unknown), ...notFound],
    [mounting({ secretId: secret.id }, deleted), ...notFound],
    [mounting({ secretId: secret.id, envName: '1A' }), 400, 'invalid_env_name'],
    [mounting({ secretId: secret.id, envName: 'A-B' }), 400, 'invalid_env_name'],
    [mounting({ secretId: secret.id, envName: undefined }), 400, 'invalid_env_name'],
    [mounting({ secretId: secret.id, envName: 'TOKEN' }), 409, 'env_name_taken'],
    [mounting({ secretId: ofPlum.id }), 403, 'secret_not_granted', /OF_PLUM .* box fig/],
    [mounting({ secretId: secret.id }, restricted), 409, 'box_restricted'],
    [creating({}, restricted), 409, 'box_restricted'],
    [creating({ name: 'TOKEN' }), 409, 'name_taken'],
    [creating({ name: 'new' }), 400, 'invalid_name'],
    [creating({ envName: 'TOKEN' }), 409, 'env_name_taken'],
    [creating({ hosts: ['10.0.0.1'] }), 400, 'invalid_host'],
    [creating({ value: large }), 400, 'bad_request'],
    [creating({}, deleted), ...notFound],
    [['DELETE', `/boxes/${plum}/secrets/smt_0`], ...notFound],
    [['DELETE', `/boxes/${unknown}/secrets/smt_0`], ...notFound],
  ]
  const before = await count()
  for (const [[method, path, body], status, code, message = /./] of cases) {
    const response = await send(method, path, body)
    const shown = `${method} ${path} ${JSON.stringify(body)?.slice(0, 100)}`
    t.match(response, { status, json: { error: code, message } }, shown)
    t.notOk(response.text.includes(VALUE) || response.text.includes('xxxxxxxx'), shown)
  }
  t.same(await count(), before)
  t.same((await send('GET', `/secrets?box=${restricted}`)).json, { secrets: [] })
})

t.test('a workspace has a limited number of secrets', async (t) => {
  const { send, db, createBox, createSecret } = await start(t)
  const box = await createBox()
  const { id } = await createSecret({ name: 'FIRST' })
  await fillSecrets(db, id, LIMITS.secrets - 1)
  for (const [path, body] of [
    ['/secrets', { name: 'NEW', value: VALUE }],
    [`/boxes/${box}/secrets`, { name: 'NEW', value: VALUE, envName: 'NEW' }],
  ] as const)
    t.match(await send('POST', path, body), { status: 402, json: { error: 'secret_limit' } })
  t.equal((await send('GET', '/secrets')).json.secrets.length, LIMITS.secrets, 'in several pages')
  await send('DELETE', '/secrets/sec_0')
  t.equal((await send('POST', '/secrets', { name: 'NEW', value: VALUE })).status, 201)
})

t.test('what limited keys may do', async (t) => {
  const { coordinator, send, createBox, createSecret } = await start(t)
  const [fig, plum] = [await createBox({ name: 'fig' }), await createBox({ name: 'plum' })]
  const secret = await createSecret({ name: 'TOKEN', hosts: ['api.example.com'] })
  const keyOf = async (limits: object) => ({ key: await createLimitedKey(coordinator, limits) })
  const ofFig = await keyOf({ boxIds: [fig] })
  const boxesOnly = await keyOf({ access: { boxes: 'write' } })
  const readOnly = await keyOf({ access: { boxes: 'read', workspace: 'read' } })
  const existing = { secretId: secret.id, envName: 'A' }
  const created = { name: 'NEW', value: VALUE, envName: 'B' }
  t.equal((await send('POST', `/boxes/${fig}/secrets`, existing, ofFig)).status, 201)
  t.equal((await send('POST', `/boxes/${plum}/secrets`, existing, ofFig)).status, 404)
  t.equal((await send('POST', `/boxes/${plum}/secrets`, existing, boxesOnly)).status, 201)
  const scope = { error: 'key_access_denied', scope: 'boxes' }
  t.match(await send('POST', `/boxes/${fig}/secrets`, created, ofFig), { status: 403, json: scope })
  t.match(await send('GET', `/secrets?box=${fig}`, undefined, ofFig), { status: 403, json: scope })
  t.match(await send('PATCH', `/secrets/${secret.id}`, { hosts: [] }, ofFig), { status: 403, json: scope })
  const area = { error: 'key_access_denied', area: 'workspace', level: 'write' }
  t.match(await send('POST', `/boxes/${plum}/secrets`, created, boxesOnly), { status: 403, json: area })
  t.match(await send('PATCH', `/secrets/${secret.id}`, { hosts: [] }, readOnly), { status: 403, json: area })
  t.equal((await send('GET', '/secrets', undefined, readOnly)).status, 200)
  t.equal((await send('GET', `/boxes/${fig}/secrets`, undefined, readOnly)).status, 200)
})

t.test('the usage of a secret', async (t) => {
  const { coordinator, send, clock, createBox, createSecret, mount, secretBroker } = await start(t)
  const [fig, plum] = [await createBox({ name: 'fig' }), await createBox({ name: 'plum' })]
  const { id } = await createSecret({ name: 'TOKEN', hosts: ['*.example.com'] })
  for (const box of [fig, plum]) await mount(box, id, 'TOKEN')
  const at = (ms: number) => new Date(clock.now() + ms).toISOString()
  const [first, second, third] = [at(1000), at(2000), at(3000)]
  for (const [boxId, host] of [
    [fig, 'a.example.com'],
    [fig, 'a.example.com'],
    [plum, 'b.example.com'],
  ] as const) {
    clock.advance(1000)
    secretBroker.recordUse({ secretId: id, boxId, host })
  }
  secretBroker.recordUse({ secretId: 'sec_deleted', boxId: fig, host: 'a.example.com' })
  await coordinator.instance.context.secretUses.flush()
  const ofFig = {
    boxId: fig,
    hostname: 'fig',
    host: 'a.example.com',
    firstAt: first,
    lastAt: second,
    count: 2,
  }
  const ofPlum = {
    boxId: plum,
    hostname: 'plum',
    host: 'b.example.com',
    firstAt: third,
    lastAt: third,
    count: 1,
  }
  t.same((await send('GET', `/secrets/${id}/usage`)).json, { uses: [ofPlum, ofFig] })
  await send('DELETE', `/boxes/${plum}`)
  t.same((await send('GET', `/secrets/${id}/usage`)).json, { uses: [{ ...ofPlum, hostname: null }, ofFig] })
})

t.test('a member who leaves takes no secret along', async (t) => {
  const { coordinator, send, createBox, createSecret, mount, listMounted, takeCuts, db, secretBroker } =
    await start(t)
  const session = await createTestSession(coordinator)
  const { member } = (await send('POST', '/members', { email: 'ada@example.com', role: 'member' }, session))
    .json
  const box = await createBox()
  await db.updateTable('boxes').set({ owner_user_id: member.id }).where('id', '=', box).execute()
  const byUser = await createSecret({
    name: 'BY_USER',
    hosts: ['a.example.com'],
    grants: [{ userId: member.id }],
  })
  const ofAll = await createSecret({ name: 'OF_ALL', hosts: ['b.example.com'] })
  for (const { id, name } of [byUser, ofAll]) await mount(box, id, name)
  t.not(await secretBroker.find(box, 'a.example.com'), null)
  t.equal((await send('DELETE', `/members/${member.id}`, undefined, session)).status, 204)
  t.same(takeCuts(), [{ boxId: box, patterns: ['a.example.com'] }])
  t.same(await listMounted(box), ['OF_ALL'])
  t.match(await send('POST', `/boxes/${box}/secrets`, { secretId: byUser.id, envName: 'A' }), {
    status: 403,
    json: { error: 'secret_not_granted' },
  })
  t.match((await send('GET', '/secrets')).json.secrets[1], {
    scope: 'granted',
    grants: [{ email: 'ada@example.com' }],
  })
})

t.test('no response and no row has the value', async (t) => {
  const { send, db, texts, createBox, createSecret, mount, takeCuts } = await start(t)
  const box = await createBox()
  const { id } = await createSecret({ name: 'TOKEN', hosts: ['api.example.com'] })
  await mount(box, id, 'TOKEN')
  await send('POST', '/secrets', { name: 'TOKEN', value: VALUE })
  await send('PATCH', `/secrets/${id}`, { value: VALUE })
  await send('POST', `/boxes/${box}/secrets`, { name: 'B', value: VALUE, envName: 'B' })
  for (const path of [`/boxes/${box}`, '/boxes', '/secrets', `/boxes/${box}/secrets`, '/audit'])
    await send('GET', path)
  takeCuts()
  t.notOk(texts.join('').includes(VALUE))
  t.notOk(JSON.stringify(await readAllRows(db)).includes(VALUE))
  const rows = await db.selectFrom('secrets').select('value').execute()
  t.equal(rows.length, 2)
  for (const { value } of rows) t.match(value, /^v1\./)
})
