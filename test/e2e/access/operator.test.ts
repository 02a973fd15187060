// The routes of the operator: which credentials of the first workspace they accept.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { CreateKeyRequest } from '../../../shared/api/keys.ts'
import { type RequestOptions, startTestCoordinator } from '../../support/coordinator.ts'
import type { OpenApiDocument } from '../../support/openapi-document.ts'
import { createTestSession } from '../../support/session.ts'
import { createCredentials } from './credentials.ts'
import { createRequest, type Target } from './requests.ts'

const METHODS = ['get', 'post', 'put', 'patch', 'delete']

async function start(t: Test) {
  const coordinator = await startTestCoordinator(t, {
    env: { BOXWOOD_BILLING: 'manual', BOXWOOD_OIDC_ISSUER: 'https://oidc.example.com' },
  })
  const { api, send, url, instance } = coordinator
  const customer = await createCredentials(coordinator).addWorkspace('customer')
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDocument
  const routes = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([method, { tags }]) => METHODS.includes(method) && tags?.includes('Operator'))
      .map(([method]) => ({ method: method.toUpperCase(), path: path.replace('/api/v1', '') })),
  )
  /** The codes with which the routes answer, such as 401 or 403 not_owner; 2xx: accepted. */
  const request = async (options: RequestOptions): Promise<string[]> => {
    const answers = new Set<string>()
    for (const { method, path } of routes) {
      const target = { workspace: customer } as Target
      const { path: url, body } = createRequest({ route: `${method} ${path}`, host: 'control' }, target)
      const { status, json } = await send(method, url, body, options)
      answers.add(status < 300 ? '2xx' : `${status} ${json.error}`)
    }
    return [...answers]
  }
  const session = await createTestSession(coordinator)
  const addKey = async (fields: CreateKeyRequest): Promise<{ id: string; key: string }> => {
    const { json } = await api('POST', '/keys', fields, session)
    return { id: json.key.id, key: json.secret }
  }
  return { ...coordinator, routes, request, session, addKey, owner: instance.owner }
}

t.test('the key in the data directory and the sessions of owners, and nothing else', async (t) => {
  const coordinator = await start(t)
  const { api, routes, request, session, addKey, owner, key, dataDir } = coordinator
  t.ok(routes.length >= 6, `${routes.length} routes`)
  const { id: box } = (await api('GET', '/boxes')).json.boxes[0]

  const refused: [name: string, limits: Omit<CreateKeyRequest, 'name'>][] = [
    ['an API key of the operator', {}],
    ['a key of the command line of the operator', { kind: 'machine' }],
    ['workspace: write', { access: { workspace: 'write' } }],
    ['everything, by its levels', { access: { boxes: 'write', workspace: 'write', history: 'read' } }],
    ['read-only', { access: 'read' }],
    ['some boxes', { boxIds: [box] }],
    ['without a user', { user: null }],
  ]
  for (const [name, limits] of refused)
    t.same(await request({ key: (await addKey({ ...limits, name })).key }), ['401 unauthorized'], name)
  const ticket = (await api('POST', `/boxes/${box}/tickets`, {}, session)).json
  t.same(await request({ key: ticket.ticket }), ['401 unauthorized'], 'a ticket')
  t.same(await request({ key: null }), ['401 unauthorized'], 'no credential')

  t.same(await request({ key }), ['2xx'], 'the key of the data directory')
  t.same(await request(session), ['2xx'], 'the session of the operator')
  t.same(await request(await createTestSession(coordinator, 'owner')), ['2xx'], 'another owner')
  t.same(await request(await createTestSession(coordinator, 'member')), ['403 not_owner'])
  t.same(await request(await createTestSession(coordinator, 'contractor')), ['403 not_allowed'])

  const ownerKey = `/keys/${owner?.credential.id}`
  t.equal((await api('PATCH', ownerKey, { access: { workspace: 'write' } }, session)).status, 200)
  t.same(await request({ key }), ['401 unauthorized'], 'the key of the data directory, limited')
  t.equal((await api('PATCH', ownerKey, { access: null }, session)).status, 200)
  t.same(await request({ key }), ['2xx'])

  const other = await addKey({ name: 'for the data directory' })
  writeFileSync(join(dataDir, 'owner.key'), `${other.key}\n`)
  t.same(await request({ key }), ['401 unauthorized'], 'the file has another key')
  t.same(await request({ key: other.key }), ['2xx'], 'the key that the user of the coordinator has put there')
})
