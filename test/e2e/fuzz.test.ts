// Random requests to every route: no 5xx, no stack trace, no request without an answer, no growing memory.
// BOXWOOD_FUZZ_RUNS sets the number of requests per route, BOXWOOD_FUZZ_SEED chooses other requests.

import { once } from 'node:events'
import { connect } from 'node:net'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { startTestCoordinator, type TestCoordinator } from '../support/coordinator.ts'
import { FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { type Components, fromSchema, oddString, type Schema } from '../support/fuzz/schema-arbitrary.ts'
import { measureHeapBytes } from '../support/heap.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { expandDocument, type OpenApiDocument } from '../support/openapi-document.ts'
import { DEADLINE_MS } from '../support/wait-until.ts'
import { createCredentials } from './access/credentials.ts'

const RUNS = Number(process.env.BOXWOOD_FUZZ_RUNS ?? 25)
const SEED = Number(process.env.BOXWOOD_FUZZ_SEED ?? 1)
const MAX_HEAP_GROWTH = 64 * 1024 * 1024

type Parameter = { name: string; in: string; schema?: Schema }
type Operation = {
  parameters?: Parameter[]
  requestBody?: { content: Record<string, { schema?: Schema }> }
}
type Document = { paths: Record<string, Record<string, Operation>>; components: Components }

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
/** Answers that stand for the agent, which rejects every request of these tests. */
const AGENT_ERRORS = ['exec_failed', 'box_unreachable']

async function setUp() {
  const infra = new FakeInfrastructure()
  infra.agentError = 'exec_failed'
  const coordinator = await startTestCoordinator(t, {
    infra,
    env: {
      ...limitsEnv({ edgeRequestsPerSecond: 1_000_000, edgeConcurrency: 1000, edgeStreams: 1000 }),
      BOXWOOD_PUBLIC_URL: 'https://boxes.example.com',
      BOXWOOD_OIDC_ISSUER: 'https://boxes.example.com/oidc',
      BOXWOOD_AWS_TEMPLATE_URL: 'https://templates.s3.amazonaws.com/boxwood-role.yaml',
      // No server listens there.
      AWS_ENDPOINT_URL_STS: 'http://127.0.0.1:1',
    },
  })
  const { api, waitForState, url } = coordinator
  const { json } = await api('POST', '/boxes', { name: 'plum' })
  await waitForState(json.box.id, 'running')
  const document = expandDocument(
    (await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDocument,
  ) as Document
  return { coordinator, boxId: json.box.id as string, document }
}

/** A path segment that fetch() does not normalise away. */
const encodeSegment = (text: string): string => {
  const wellFormed = text.toWellFormed()
  return wellFormed === '.' || wellFormed === '..' ? '%2e%2e%2f' : encodeURIComponent(wellFormed) || '%20'
}

type Sample = {
  params: Record<string, string>
  query: Record<string, string>
  body: unknown
  rawBody: Uint8Array | null
  contentType: string
  idempotencyKey: string | null
  credential: 'key' | 'session' | 'none'
}

function createSample(operation: Operation, components: Components, boxId: string): fc.Arbitrary<Sample> {
  const { parameters = [], requestBody } = operation
  const content = requestBody?.content['application/json']?.schema
  const values = (location: string) =>
    fc.record(
      Object.fromEntries(
        parameters
          .filter((parameter) => parameter.in === location)
          .map(({ name, schema = {} }) => [
            name,
            fc.oneof(
              ...(location === 'path' ? [fc.constant(name === 'box' ? 'plum' : boxId)] : []),
              fromSchema(schema, components).map((value) => String(value).slice(0, 300)),
              oddString,
            ),
          ]),
      ),
      location === 'query' ? { requiredKeys: [] } : {},
    ) as fc.Arbitrary<Record<string, string>>
  return fc.record({
    params: values('path'),
    query: values('query'),
    body: content === undefined ? fc.constant(undefined) : fromSchema(content, components),
    rawBody: fc.oneof(
      { weight: 9, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }) },
    ),
    contentType: fc.constantFrom(
      ...['application/json', 'application/json', 'application/json; charset=utf-8'],
      ...['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', ''],
    ),
    idempotencyKey: fc.option(fc.stringMatching(/^[!-~]{1,140}$/), { freq: 4 }),
    credential: fc.constantFrom('key', 'key', 'session', 'none') as fc.Arbitrary<Sample['credential']>,
  })
}

/** The problem of the response; null: none. */
async function findProblem(response: Response): Promise<string | null> {
  const { status } = response
  // An event stream that is open is an answer too.
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  if (isStream) await response.body?.cancel()
  const text = isStream ? '' : await response.text()
  if (/\n\s+at .+:\d+:\d+|node_modules|\.ts:\d+/.test(text)) return `a stack trace: ${text.slice(0, 500)}`
  if (status < 500) return null
  const code = /"(?:code|error)":"(\w+)"/.exec(text)?.[1] ?? ''
  return AGENT_ERRORS.includes(code) ? null : `${status} ${text.slice(0, 500)}`
}

async function fuzzRoute(
  { coordinator, boxId, document }: Awaited<ReturnType<typeof setUp>>,
  method: string,
  path: string,
): Promise<void> {
  const operation = document.paths[path]?.[method]
  if (operation === undefined) return
  const credentials = createCredentials(coordinator)
  const { workspaceId, userId } = coordinator.instance.owner ?? {}
  if (!workspaceId || !userId) throw new Error('the coordinator has no owner')
  const owner = { id: userId, workspaceId, email: '' }
  const sample = createSample(operation, document.components, boxId)
  const property = fc.asyncProperty(sample, async (input) => {
    const { params, query, body, rawBody, contentType, idempotencyKey, credential } = input
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeSegment(params[name] ?? ''))
    const search = new URLSearchParams(
      Object.entries(query).map(([name, value]) => [name, value.toWellFormed()] as [string, string]),
    )
    const headers: Record<string, string> = {
      ...(contentType !== '' && { 'content-type': contentType }),
      ...(idempotencyKey !== null && { 'idempotency-key': idempotencyKey }),
      ...(credential === 'key' && { authorization: `Bearer ${coordinator.key}` }),
      // A request may end the session.
      ...(credential === 'session' && { cookie: (await credentials.addSession(owner)).cookie }),
    }
    const sent = rawBody ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await fetch(`${coordinator.url}${filled}?${search}`, {
      method: method.toUpperCase(),
      headers,
      ...(method !== 'get' && sent !== undefined && { body: sent as string | Uint8Array<ArrayBuffer> }),
      signal: AbortSignal.timeout(DEADLINE_MS),
    })
    const problem = await findProblem(response)
    if (problem !== null) throw new Error(problem)
  })
  await fc.assert(property, { numRuns: RUNS, seed: SEED, endOnFailure: true })
}

async function assertAlive(t: Test, { url }: TestCoordinator): Promise<void> {
  const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(DEADLINE_MS) })
  t.equal(response.status, 200, 'the coordinator responds')
}

t.test('random requests of every route', async (t) => {
  const setup = await setUp()
  const before = await measureHeapBytes()
  for (const [path, operations] of Object.entries(setup.document.paths))
    for (const method of METHODS.filter((name) => name in operations)) {
      try {
        await fuzzRoute(setup, method, path)
      } catch (error) {
        t.fail(`${method} ${path} with BOXWOOD_FUZZ_SEED=${SEED}: ${(error as Error).message}`)
      }
    }
  const growth = (await measureHeapBytes()) - before
  t.ok(growth < MAX_HEAP_GROWTH, `the heap grew by ${growth} bytes`)
  await assertAlive(t, setup.coordinator)
})

/** Sends the bytes, and resolves with the response when the server has closed the connection. */
async function sendBytes(port: number, bytes: Uint8Array): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const timer = setTimeout(() => socket.destroy(new Error('the connection is still open')), DEADLINE_MS)
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  try {
    socket.end(bytes)
    await once(socket, 'close')
  } catch (error) {
    // The server may reset a connection that it does not understand.
    if (
      (error as NodeJS.ErrnoException).code !== 'ECONNRESET' &&
      (error as NodeJS.ErrnoException).code !== 'EPIPE'
    )
      throw error
  } finally {
    clearTimeout(timer)
  }
  return text
}

/** Requests of which some bytes are replaced, removed or repeated. */
function createBrokenRequest(key: string, boxId: string): fc.Arbitrary<Uint8Array> {
  const requests = [
    `GET /api/v1/boxes/${boxId} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nconnection: close\r\n\r\n`,
    `POST /api/v1/boxes HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 15\r\nconnection: close\r\n\r\n{"name":"fig-"}`,
    `PUT /v1/box/plum/upload?path=a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
    `GET /v1/box/plum/terminal HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
  ]
  const change = fc.tuple(
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.integer({ min: 0, max: 8 }),
    fc.uint8Array({ maxLength: 8 }),
  )
  const broken = fc
    .tuple(fc.constantFrom(...requests), fc.array(change, { minLength: 1, maxLength: 4 }))
    .map(([request, changes]) =>
      changes.reduce((bytes, [position, removed, inserted]) => {
        const at = Math.floor(position * bytes.length)
        return Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at + removed)])
      }, Buffer.from(request)),
    )
  return fc.oneof(broken, fc.uint8Array({ minLength: 1, maxLength: 400 }))
}

t.test('random bytes on the socket', async (t) => {
  const { coordinator, boxId } = await setUp()
  const { port } = new URL(coordinator.url)
  const property = fc.asyncProperty(createBrokenRequest(coordinator.key, boxId), async (bytes) => {
    const text = await sendBytes(Number(port), bytes)
    if (/\n\s+at .+:\d+:\d+|node_modules/.test(text)) throw new Error(`a stack trace: ${text}`)
    const [, status, code] = /^HTTP\/1\.1 (5\d\d)[\s\S]*"(?:code|error)":"(\w+)"/.exec(text) ?? []
    if (status !== undefined && !AGENT_ERRORS.includes(code ?? '')) throw new Error(text)
  })
  await fc.assert(property, { numRuns: RUNS * 20, seed: SEED, endOnFailure: true })
  await assertAlive(t, coordinator)
})
