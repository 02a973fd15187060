// No GET route does more than ten times the work in a workspace with 2,000 boxes and 100,000 commands, compared with 20 boxes
// and 100 commands. The work is the number of rows that the request reads, and the size of its response.

import t, { type Test } from 'tap'
import { serveAllRegions } from '../../coordinator/providers/regions.ts'
import { newId } from '../../shared/ids.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createWorkCounter, type Work } from '../support/count-work.ts'
import { FakeImages, withImages } from '../support/fake-images.ts'
import { FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { fillBoxes } from '../support/fill-boxes.ts'
import { expandDocument } from '../support/openapi-document.ts'
import { payWorkspace } from '../support/pay-workspace.ts'
import { createTestSession } from '../support/session.ts'
import { createRequest, type Target, WEBSOCKETS } from './access/requests.ts'

const SMALL = { boxes: 20, commands: 100 }
const LARGE = { boxes: 2000, commands: 100_000 }
const MAX_GROWTH = 10

/** These responses have every box. Instead of their sum, the work between two turns of the event loop is compared. */
const WITH_EVERY_BOX = {
  'GET /me': 'spec §2.3: every box the caller may see',
  'GET /boxes': 'spec §4.3: the list has no pages without `limit`',
  'GET /team/status': 'spec §2.10',
  'GET /agents': 'the agent of every box',
  'GET /port-shares': 'spec §4.5: every live link',
}

type Parameter = { in: string; name: string; schema?: { enum?: string[] } }
type Operation = { parameters?: Parameter[]; security: Record<string, unknown>[] }
type Document = { paths: Record<string, { get?: Operation }> }

type GetRequest = { route: string; path: string; bySession: boolean }

function getValues(parameter: Parameter, { box }: Target): string[] {
  if (parameter.in !== 'query') return []
  if (parameter.name === 'limit') return ['10']
  return parameter.name === 'box' ? [box] : (parameter.schema?.enum ?? [])
}

/** The queries with each combination of a limit, a box and the parameters that have a list of values. */
function combineFilters({ parameters = [] }: Operation, target: Target): string[] {
  const queries = ['']
  for (const parameter of parameters)
    queries.push(
      ...getValues(parameter, target).flatMap((value) =>
        queries.map((query) => `${query === '' ? '' : `${query}&`}${parameter.name}=${value}`),
      ),
    )
  return queries.filter((query) => !isRefused(query))
}

/** `deleted` of GET /boxes is valid only with a box, and without `live`. */
const isRefused = (query: string): boolean =>
  query.includes('deleted=') && (query.includes('live=') || !query.includes('box='))

/** Requests to every GET route of the document. createRequest() throws for a route that has no request. */
function listRequests({ paths }: Document, target: Target): GetRequest[] {
  return Object.entries(paths).flatMap(([fullPath, { get }]) => {
    if (get === undefined) return []
    const host = fullPath.startsWith('/v1/box/') ? ('edge' as const) : ('control' as const)
    const route = `GET ${fullPath.replace(/^(\/api\/v1|\/v1\/box\/\{box\})/, '')}`
    // The work of a feed, which sends every box, is that of the lists, page by page.
    if (WEBSOCKETS.includes(route)) return []
    const { path } = createRequest({ route, host }, target)
    const bySession = !get.security.some((scheme) => 'apiKey' in scheme)
    // An agent evaluates the filters of the edge.
    const filters = host === 'edge' ? [''] : combineFilters(get, target)
    return filters.map((query) => ({
      route,
      path: query === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`,
      bySession,
    }))
  })
}

type Measured = Work & { bytes: number; route: string }

/** @returns the work of each request by its path, with names in place of the ids of this coordinator */
async function measure(t: Test, size: { boxes: number; commands: number }): Promise<Map<string, Measured>> {
  const infra = new FakeInfrastructure()
  const provider = withImages(infra.provider, new FakeImages(), 'local')
  const env = {
    BOXWOOD_DATABASE_URL: '',
    BOXWOOD_BILLING: 'manual',
    BOXWOOD_OIDC_ISSUER: 'https://oidc.example.com',
  }
  const coordinator = await startTestCoordinator(t, { infra, providers: serveAllRegions(provider), env })
  const { api, send, instance, waitForState } = coordinator
  const { db } = instance.context
  const session = await createTestSession(coordinator)
  await payWorkspace(coordinator)
  const deleted = (await api('POST', '/boxes', {})).json.box.id
  const { operation } = (await api('DELETE', `/boxes/${deleted}`)).json
  const box = (await api('POST', '/boxes', {})).json.box.id
  await waitForState(box, 'running')
  await fillBoxes(db, { boxId: box, ...size })
  const { id: secret } = (await api('POST', '/secrets', { name: 'TOKEN', value: 'a' })).json.secret
  const list = await api('GET', `/boxes/${box}/commands?limit=1`)
  const target: Target = {
    box,
    snapshot: newId('snapshot'),
    command: list.json.commands[0].id,
    operation: operation.id,
    environment: newId('environment'),
    enrollment: newId('enrollment'),
    awsRole: newId('awsRole'),
    awsConnect: newId('awsConnect'),
    share: newId('portShare'),
    secret,
    grant: newId('secretGrant'),
    mount: newId('secretMount'),
    session: session.sessionId,
    key: (await db.selectFrom('api_keys').select('id').executeTakeFirstOrThrow()).id,
    member: session.userId,
    workspaceName: '',
    workspace: instance.owner?.workspaceId ?? '',
  }
  const countWork = createWorkCounter(t, db)
  const measured = new Map<string, Measured>()
  for (const request of listRequests(expandDocument((await send('GET', '/openapi.json')).json), target)) {
    const { path, bySession } = request
    let bytes = 0
    const work = await countWork(async () => {
      const response = await send('GET', path, undefined, bySession ? session : {})
      // The agents of the fake machines reject requests, and there are no snapshots of processes and no download links.
      const isMissing = /\/(procs-at|downloads\/\{token\})$/.test(request.route)
      const expected = path.startsWith('/v1') ? 502 : isMissing ? 404 : 200
      if (response.status !== expected)
        throw new Error(`GET ${path} responded with ${response.status}: ${response.text}`)
      bytes = Buffer.byteLength(response.text)
    })
    const names = Object.entries(target).filter(([, id]) => id !== '')
    const name = names.reduce((text, [key, id]) => text.replaceAll(id, `{${key}}`), path)
    measured.set(name.replace(/\?t=\d+/, '?t=now'), { ...work, bytes, route: request.route })
  }
  return measured
}

t.test('requests do not grow with the workspace', async (t) => {
  const small = await measure(t, SMALL)
  const large = await measure(t, LARGE)
  t.same([...small.keys()], [...large.keys()])
  t.ok(small.size > 40, `${small.size} requests`)
  for (const [path, after] of large) {
    const before = small.get(path)
    if (before === undefined) continue
    const compare = (unit: 'rows' | 'rowsPerTurn' | 'bytes', max: number) =>
      t.ok(
        after[unit] <= max * Math.max(1, before[unit]),
        `GET ${path}: ${unit} ${before[unit]} with ${SMALL.boxes} boxes, ${after[unit]} with ${LARGE.boxes}`,
      )
    if (after.route in WITH_EVERY_BOX && !path.includes('limit=') && !path.includes('box=')) {
      compare('rowsPerTurn', MAX_GROWTH)
      // Not faster than the number of boxes.
      for (const unit of ['rows', 'bytes'] as const) compare(unit, (2 * LARGE.boxes) / SMALL.boxes)
      continue
    }
    for (const unit of ['rows', 'bytes'] as const) compare(unit, MAX_GROWTH)
  }
})
