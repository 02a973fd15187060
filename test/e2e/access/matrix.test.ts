// Spec §5: every route with every kind of credential, compared with the tables of docs/access.md.

import t from 'tap'
import { WebSocket } from 'ws'
import type { AccessLevels } from '../../../shared/api/account.ts'
import { type ApiResponse, startTestCoordinator } from '../../support/coordinator.ts'
import { FakeInfrastructure } from '../../support/fake-infrastructure.ts'
import { limitsEnv } from '../../support/limits-env.ts'
import type { OpenApiDocument } from '../../support/openapi-document.ts'
import { createCredentials, type User } from './credentials.ts'
import { createRequest, type Target, WEBSOCKETS } from './requests.ts'
import { type Cell, COLUMNS, type Column, type Row, readRoutesWithoutCredential, readRows } from './tables.ts'
import { createTargets } from './targets.ts'

const rows = readRows()
const HOUR_MS = 3_600_000

type Credential = Record<string, string>
const byKey = (key: string): Credential => ({ authorization: `Bearer ${key}` })

async function setUp() {
  const infra = new FakeInfrastructure()
  // Not an error that the edge retries.
  infra.agentError = 'exec_failed'
  const coordinator = await startTestCoordinator(t, {
    infra,
    env: {
      ...limitsEnv({ edgeRequestsPerSecond: 1_000_000 }),
      BOXWOOD_SIGNUP: 'open',
      BOXWOOD_SNAPSHOT_LIMIT: '1000',
      BOXWOOD_OIDC_ISSUER: 'https://oidc.example.com',
      // No server listens there.
      AWS_ENDPOINT_URL_STS: 'http://127.0.0.1:1',
    },
  })
  const credentials = createCredentials(coordinator)
  const targets = createTargets(coordinator, credentials)
  /** Not the first workspace of the coordinator, which cannot be closed. */
  const addOwner = async (workspaceName: string) => {
    const user = await credentials.addUser(await credentials.addWorkspace(workspaceName), 'owner')
    return { user, key: (await credentials.addKey(user)).key, workspaceName }
  }
  const owner = await addOwner('tested')
  const foreign = await addOwner('foreign')
  const target = await targets.add(owner)
  const addMember = async (role: 'member' | 'contractor') => {
    const user = await credentials.addUser(owner.user.workspaceId, role)
    return { user, key: (await credentials.addKey(user)).key, workspaceName: 'tested' }
  }
  return {
    ...{ coordinator, credentials, targets, owner, foreign, target },
    member: await addMember('member'),
    contractor: await addMember('contractor'),
  }
}

/** A request of any route; WebSocket handshakes resolve with the response that refuses them. */
async function send(
  url: string,
  row: Row,
  target: Target,
  headers: Credential,
): Promise<Response | ApiResponse> {
  const { path, body } = createRequest(row, target)
  if (WEBSOCKETS.includes(row.route)) return openWebSocket(url + path, headers)
  return fetch(url + path, {
    method: row.method,
    headers: {
      ...headers,
      ...(typeof body === 'object' && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
}

function openWebSocket(url: string, headers: Credential): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  const ws = new WebSocket(url.replace('http', 'ws'), { headers })
  ws.on('open', () => {
    ws.terminate()
    resolve(new Response('{}', { status: 200 }))
  })
  ws.on('unexpected-response', async (_request, response) => {
    let text = ''
    for await (const chunk of response) text += chunk
    resolve(new Response(text, { status: response.statusCode ?? 0 }))
  })
  ws.on('error', reject)
  return promise
}

type Answer = {
  status: number
  code: string | undefined
  json: Record<string, unknown> | undefined
  text: string
}

async function readAnswer(response: Response | ApiResponse): Promise<Answer> {
  const text = typeof response.text === 'string' ? response.text : await response.text()
  const json = parseJson(text)
  const error = json?.error
  const code = typeof error === 'object' && error !== null ? (error as { code: string }).code : error
  return { status: response.status, code: code as string | undefined, json, text }
}

function parseJson(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const REFUSALS: Record<Exclude<Cell, '✓' | 'own'>, [status: number, code: string]> = {
  '401': [401, 'unauthorized'],
  '404': [404, 'not_found'],
  area: [403, 'key_access_denied'],
  scope: [403, 'key_access_denied'],
  role: [403, 'not_allowed'],
  owner: [403, 'not_owner'],
}

/** The cell that the answer stands for. */
function describeAnswer({ status, code, json, text }: Answer): string {
  const details = (json?.error as { area?: string } | undefined)?.area ? json?.error : json
  const { area, scope } = (details ?? {}) as { area?: string; scope?: string }
  if (status === 403 && code === 'key_access_denied') return scope === 'boxes' ? 'scope' : `area ${area}`
  // The route has passed the check of the box: no process snapshot is stored.
  if (status === 404 && /process snapshot/.test(text)) return '✓'
  // The route has checked the token: only its creator can use a link.
  if (status === 404 && /download link/.test(text)) return '✓'
  for (const [cell, [refusedStatus, refusedCode]] of Object.entries(REFUSALS))
    if (status === refusedStatus && code === refusedCode) return cell
  const isUnexpected = status === 401 || status === 403 || status === 404 || status === 500
  return isUnexpected ? `${status} ${code}` : '✓'
}

const hasId = ({ path, host }: Row) => host === 'edge' || path.includes('{') || path === '/audit'

t.test('every route of the API has a row, and every row a route', async (t) => {
  const { url } = await startTestCoordinator(t)
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDocument
  const routes = Object.entries(document.paths)
    .flatMap(([path, operations]) => Object.keys(operations).map((method) => [method.toUpperCase(), path]))
    .filter(([method]) => ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].includes(method ?? ''))
    .map(([method, path = '']) => `${method} ${path.replace(/^\/(api\/v1|v1\/box\/\{box\})/, '')}`)
  t.same([...rows.map(({ route }) => route), ...readRoutesWithoutCredential()].sort(), routes.sort())
})

t.test('the answers are those of the tables', async (t) => {
  const setup = await setUp()
  const { coordinator, credentials, targets, owner, foreign, target, member, contractor } = setup
  const { url } = coordinator
  const { db } = coordinator.instance.context
  const limited = async (access: AccessLevels) =>
    byKey((await credentials.addKey(owner.user, { access })).key)
  const ownBox = await targets.add(owner)
  const someBoxes = await credentials.addKey(owner.user, { boxIds: [ownBox.box, ownBox.deletedBox] })
  const ofContractor = await targets.add(contractor)
  const ofForeign = await targets.add(foreign)
  const session = (user: User) => async () => ({ cookie: (await credentials.addSession(user)).cookie })
  const fixed = (credential: Credential) => async () => credential

  type Caller = {
    /** Sessions are new for each request: some routes end them. */
    getCredential: () => Promise<Credential>
    /** Who owns the things of an `own` cell, and the things. */
    own: () => Promise<{ owner: typeof owner; target: Target }>
  }
  const none = async () => ({ owner, target })
  /** The target of a user: new sessions and keys, and the boxes of `base`. */
  const ofUser = (of: typeof owner, base: Target) => async () => ({
    owner: of,
    target: {
      ...base,
      session: (await credentials.addSession(of.user)).id,
      key: (await credentials.addKey(of.user)).id,
    },
  })
  const callers: Record<Column, Caller> = {
    'owner key': { getCredential: fixed(byKey(owner.key)), own: none },
    'member key': { getCredential: fixed(byKey(member.key)), own: none },
    'contractor key': { getCredential: fixed(byKey(contractor.key)), own: ofUser(contractor, ofContractor) },
    'read-only key': { getCredential: fixed(await limited({ boxes: 'read', workspace: 'read' })), own: none },
    'boxes: read': { getCredential: fixed(await limited({ boxes: 'read' })), own: none },
    'boxes: run': { getCredential: fixed(await limited({ boxes: 'run' })), own: none },
    'boxes: write': { getCredential: fixed(await limited({ boxes: 'write' })), own: none },
    'workspace: read': { getCredential: fixed(await limited({ workspace: 'read' })), own: none },
    'workspace: write': { getCredential: fixed(await limited({ workspace: 'write' })), own: none },
    'some boxes': {
      getCredential: fixed(byKey(someBoxes.key)),
      own: async () => ({ owner, target: ownBox }),
    },
    ticket: {
      getCredential: async () => byKey(await credentials.addTicket(owner.user, ownBox.box)),
      own: async () => ({ owner, target: ownBox }),
    },
    'owner session': { getCredential: session(owner.user), own: ofUser(owner, target) },
    'member session': { getCredential: session(member.user), own: ofUser(member, target) },
    'contractor session': { getCredential: session(contractor.user), own: ofUser(contractor, ofContractor) },
    'foreign key': { getCredential: fixed(byKey(foreign.key)), own: ofUser(foreign, ofForeign) },
    'foreign session': { getCredential: session(foreign.user), own: ofUser(foreign, ofForeign) },
  }

  for (const row of rows) {
    const problems: string[] = []
    for (const column of COLUMNS) {
      const { getCredential, own } = callers[column]
      const cell = row.cells[column]
      const request = async (target: Target) =>
        readAnswer(await send(url, row, target, await getCredential()))
      const expect = async (answer: Answer, expected: string) => {
        const actual = describeAnswer(answer)
        const wanted = expected === 'area' ? `area ${row.area}` : expected
        if (actual !== wanted)
          problems.push(
            `${column}: ${actual} instead of ${wanted}: ${answer.status} ${answer.text.slice(0, 200)}`,
          )
      }
      if (cell !== 'own') {
        await expect(
          await request(cell === '✓' ? await targets.renew(row.route, owner, target) : target),
          cell,
        )
      } else {
        if (hasId(row) && !(row.route === 'GET /audit')) await expect(await request(target), '404')
        const { owner: ownOwner, target: ownTarget } = await own()
        const renewed = await targets.renew(row.route, ownOwner, ownTarget)
        if (column === 'some boxes')
          await credentials.setBoxes(someBoxes.id, [renewed.box, ownBox.deletedBox])
        const answer = await request(renewed)
        await expect(answer, '✓')
        // A list has nothing of the owner.
        const { box, snapshot, share, secret, key, session } = target
        for (const id of [box, snapshot, share, secret, key, session])
          if (answer.text.includes(id)) problems.push(`${column}: the answer contains ${id} of the owner`)
      }
      if (row.path.startsWith('/workspace/'))
        await db.updateTable('workspaces').set({ closing_at: null, purge_after: null }).execute()
    }
    t.same(problems, [], row.route)
  }
})

t.test('credentials that no route accepts', async (t) => {
  const { coordinator, credentials, owner, target, targets } = await setUp()
  const { url } = coordinator
  const revoked = await credentials.addKey(owner.user)
  await credentials.revoke(revoked.id)
  const expired = await credentials.addKey(owner.user, { expiresAt: Date.now() - 1 })
  const unverified = await credentials.addKey(owner.user, { unverifiedSince: Date.now() })
  const removed = await credentials.addUser(owner.user.workspaceId, 'member')
  const ofRemoved = await credentials.addKey(removed)
  const sessionOfRemoved = await credentials.addSession(removed)
  const { db } = coordinator.instance.context
  await db.updateTable('users').set({ removed_at: Date.now() }).where('id', '=', removed.id).execute()
  const expiredTicket = await credentials.addTicket(owner.user, target.box, Date.now() - HOUR_MS)
  const { cookie: expiredSession } = await credentials.addSession(owner.user, Date.now() - HOUR_MS)
  const [good = ''] = [owner.key]
  const unauthorized = { status: 401, code: 'unauthorized' }
  const tokenExpired = { status: 401, code: 'token_expired' }
  const cases: [name: string, credential: Credential, answer: { status: number; code: string }][] = [
    ['none', {}, unauthorized],
    ['garbage', { authorization: 'Bearer garbage' }, unauthorized],
    [
      'another scheme',
      { authorization: `Basic ${Buffer.from(`x:${good}`).toString('base64')}` },
      unauthorized,
    ],
    ['a mistyped key', byKey(`${good.slice(0, -1)}${good.endsWith('a') ? 'b' : 'a'}`), unauthorized],
    ['an unknown key', byKey('dcp_unknown'), unauthorized],
    ['a revoked key', byKey(revoked.key), unauthorized],
    ['the key of a removed member', byKey(ofRemoved.key), unauthorized],
    ['an expired key', byKey(expired.key), tokenExpired],
    ['an expired ticket', byKey(expiredTicket), tokenExpired],
    ['an unknown ticket', byKey('dct_unknown'), unauthorized],
    ['an expired session', { cookie: expiredSession }, unauthorized],
    ['the session of a removed member', { cookie: sessionOfRemoved.cookie }, unauthorized],
    [
      'a session as a bearer',
      byKey((await credentials.addSession(owner.user)).cookie.split('=')[1] ?? ''),
      unauthorized,
    ],
    ['an unverified key', byKey(unverified.key), { status: 403, code: 'verification_required' }],
    ['a monitor ticket', byKey('dcm_0123456789'), unauthorized],
    ['a phone password', byKey('dcw_0123456789'), unauthorized],
    ['a viewer cookie', { cookie: '__Host-boxwood_viewer=0123456789' }, unauthorized],
  ]
  for (const row of rows)
    for (const [name, credential, answer] of cases) {
      const { status, code, json } = await readAnswer(await send(url, row, target, credential))
      const isMe = row.route === 'GET /me' && name === 'an unverified key'
      const isReport = row.route === 'POST /audit' && name === 'a monitor ticket'
      const expected = isMe
        ? { status: 200, code: undefined }
        : isReport
          ? { status: 403, code: 'not_allowed' }
          : answer
      if (status !== expected.status || code !== expected.code)
        t.same({ status, code }, expected, `${row.route}: ${name}`)
      if (code === 'token_expired')
        t.match(
          typeof json?.error === 'object' ? json.error : json,
          { expiresAt: String },
          `${row.route}: ${name}`,
        )
    }
  t.pass(`${rows.length} routes with ${cases.length} credentials`)
  void targets
})
