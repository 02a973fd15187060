// The OpenAPI document: available without a key, complete and consistent.
import t from 'tap'
import { EXAMPLES } from '../../../coordinator/http/openapi-examples.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { type CheckedResponse, createOpenApiCheck, createSchemaCheck } from '../../support/openapi-check.ts'
import { expandDocument, type OpenApiDocument, type Operation } from '../../support/openapi-document.ts'

/** Programs download the document, and generators and assistants read it whole. */
const MAX_BYTES = 350 * 1024

t.test('is small: what operations share stands in it once', async (t) => {
  const { send } = await startTestCoordinator(t)
  const { text, json } = await send('GET', '/openapi.json', undefined, { key: null })
  t.ok(Buffer.byteLength(text) <= MAX_BYTES, `${Buffer.byteLength(text)} bytes`)
  const seen = new Map<string, string>()
  for (const [path, operations] of Object.entries<object>(json.paths))
    for (const [method, { responses }] of Object.entries<Operation>(operations as never))
      for (const [status, response] of Object.entries(responses)) {
        const content = JSON.stringify(response)
        if (response['x-error-codes'] === undefined) continue
        t.equal(seen.get(content), undefined, `${method} ${path} ${status} repeats a response`)
        seen.set(content, `${method} ${path}`)
      }
})

t.test('describes the routes of both hosts, their parameters and error codes', async (t) => {
  const { send, url } = await startTestCoordinator(t)
  const { status, text, json } = await send('GET', '/openapi.json', undefined, { key: null })
  t.equal(status, 200)
  t.equal(json.openapi, '3.1.0')
  t.same(json.servers, [{ url }])
  t.same(json.security, [{ apiKey: [] }, { session: [] }])
  t.equal(json.components.securitySchemes.apiKey.scheme, 'bearer')

  const { paths } = expandDocument(json as OpenApiDocument)
  const documentedRoutes = Object.entries(paths).flatMap(([path, pathItem]) =>
    Object.keys(pathItem).map((method) => `${method} ${path}`),
  )
  for (const expected of [
    'get /api/v1/me',
    'get /api/v1/boxes',
    'post /api/v1/boxes',
    'get /api/v1/boxes/{id}',
    'delete /api/v1/boxes/{id}',
    'post /api/v1/boxes/{id}/wake',
    'post /api/v1/boxes/{id}/suspend',
    'get /api/v1/operations/{id}',
    'post /v1/box/{box}/exec',
    'get /v1/box/{box}/files',
    'put /v1/box/{box}/files',
    'get /v1/box/{box}/download',
    'put /v1/box/{box}/upload',
    'get /v1/box/{box}/exec/{processId}/attach',
    'get /v1/box/{box}/ports/{port}',
  ])
    t.ok(documentedRoutes.includes(expected), expected)

  const ids = Object.values(paths).flatMap((pathItem) =>
    Object.values(pathItem).map(({ operationId }) => operationId),
  )
  t.same(
    ids.filter((id) => !/^[a-z]+(?:[A-Z][a-z]+)*\.[a-z]+(?:[A-Z][a-z]+)*$/.test(id)),
    [],
    'each route has an id',
  )
  t.equal(new Set(ids).size, ids.length, 'ids are unique')

  const groups = Object.values(json.paths as Record<string, Record<string, { tags: string[] }>>)
    .flatMap((pathItem) => Object.values(pathItem))
    .map(({ tags }) => tags[0])
  const tags: { name: string; description: string }[] = json.tags
  t.same(
    [...new Set(groups)],
    tags.map(({ name }) => name),
    'the groups are declared, in their order',
  )
  for (const { name, description } of tags) t.match(description, /^[A-Z].{10,120}\.$/, name)
  const boxPaths = documentedRoutes.filter((route) => route.includes('/api/v1/boxes'))
  t.match(boxPaths[0], / \/api\/v1\/boxes$/, 'a resource precedes its parts')

  for (const [path, pathItem] of Object.entries(paths)) {
    for (const [method, { summary, parameters = [], responses, security }] of Object.entries(pathItem)) {
      const pathParameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const declaredParameters = parameters
        .filter((parameter) => parameter.in === 'path')
        .map(({ name }) => name)
      t.same(
        declaredParameters.sort(),
        pathParameters.sort(),
        `${method} ${path} declares its path parameters`,
      )
      t.ok(summary)
      const needsCredential = security.length > 0
      if (needsCredential) t.ok(responses['401']?.['x-error-codes']?.includes('unauthorized'))
      t.ok(Object.keys(responses).some((status) => status.startsWith('2') || status === '101'))
    }
  }
  const getSecurity = (method: string, path: string) => paths[path]?.[method]?.security
  t.same(getSecurity('post', '/api/v1/sign-in'), [])
  t.same(getSecurity('get', '/api/v1/session'), [{ session: [] }])
  t.same(getSecurity('post', '/api/v1/boxes'), [{ apiKey: [] }, { session: [] }])
  t.same(getSecurity('get', '/api/v1/boxes'), [{ apiKey: [] }, { session: [] }, { ticket: [] }])
  t.same(getSecurity('post', '/v1/box/{box}/exec'), [{ apiKey: [] }, { ticket: [] }])
  const createBox = paths['/api/v1/boxes']?.post
  t.match(createBox?.responses['400']?.['x-error-codes'], [
    'bad_request',
    'invalid_idempotency_key',
    'invalid_name',
  ])
  t.ok(createBox?.parameters?.some(({ name }) => name === 'Idempotency-Key'))
  t.match(
    json.info.description,
    /Sandboxes: their routes respond with 404/,
    'lists the features that are not provided',
  )
  t.match(json.info.description, /githubLogin.* always null/)

  const references = [...text.matchAll(/"#\/components\/(\w+)\/([^"]+)"/g)]
  const referenced = new Set(references.map(([, kind, name]) => `${kind}/${name}`))
  const defined = Object.entries(json.components as Record<string, object>).flatMap(([kind, components]) =>
    Object.keys(components).map((name) => `${kind}/${name}`),
  )
  t.same(
    [...referenced].filter((name) => !defined.includes(name)),
    [],
    'all components are defined',
  )
  t.same(
    defined.filter((name) => !referenced.has(name)).sort(),
    ['securitySchemes/apiKey', 'securitySchemes/session', 'securitySchemes/ticket'],
    'all components are used; credentials are named without a reference',
  )
})

/** The status of the response, and the codes of the spec that do not follow from the method of the route (§4.3, §4.8, §7.1). */
const BOX_ROUTES: Record<string, [status: number, codes: string]> = {
  'get /boxes': [200, ''],
  'post /boxes': [
    202,
    `not_found invalid_name invalid_tier invalid_region invalid_env invalid_auto_pause invalid_pause_at invalid_template
    environment_too_large restore_tier_not_allowed name_taken snapshot_in_progress snapshot_unavailable box_limit
    insufficient_balance tier_unavailable policy_denied workspace_held workspace_closing idempotency_key_reused`,
  ],
  'get /boxes/{id}': [200, 'not_found'],
  'patch /boxes/{id}': [
    200,
    `not_found invalid_auto_pause invalid_pause_at invalid_auto_snapshot invalid_env environment_too_large
    box_not_running policy_denied not_owner`,
  ],
  'delete /boxes/{id}': [202, 'not_found'],
  'post /boxes/{id}/wake': [202, 'not_found box_failed wake_rejected workspace_held'],
  'post /boxes/{id}/suspend': [202, 'not_found'],
  'post /boxes/{id}/resize': [
    202,
    'not_found invalid_tier resize_rejected tier_unavailable workspace_held idempotency_key_reused',
  ],
  'post /boxes/{id}/region': [
    202,
    'not_found invalid_region move_rejected workspace_held idempotency_key_reused',
  ],
  'post /boxes/{id}/fork': [
    202,
    `not_found invalid_name invalid_tier no_volume name_taken restore_tier_not_allowed snapshot_limit box_limit
    insufficient_balance idempotency_key_reused`,
  ],
  'post /boxes/{id}/template': [
    201,
    'not_found no_volume invalid_template snapshot_limit idempotency_key_reused',
  ],
  'get /boxes/{id}/metrics': [200, 'not_found'],
  'get /boxes/{id}/procs-at': [200, 'not_found'],
  'get /operations/{id}': [200, 'not_found'],
  'get /snapshots': [200, ''],
  'post /snapshots': [201, 'not_found no_volume invalid_name snapshot_limit idempotency_key_reused'],
  'delete /snapshots/{id}': [202, 'not_found'],
  'post /snapshots/{id}/restore': [
    202,
    `not_found invalid_name invalid_tier snapshot_unavailable restore_tier_not_allowed name_taken
    box_limit insufficient_balance idempotency_key_reused`,
  ],
  'post /snapshots/{id}/template': [
    200,
    'not_found invalid_template snapshot_in_progress snapshot_unavailable',
  ],
  'delete /snapshots/{id}/template': [200, 'not_found'],
}

t.test('describes the statuses and codes of the routes of boxes and snapshots', async (t) => {
  const { send } = await startTestCoordinator(t)
  const { paths } = expandDocument((await send('GET', '/openapi.json')).json)
  for (const [route, [status, codes]] of Object.entries(BOX_ROUTES)) {
    const [method = '', path] = route.split(' ')
    const { responses }: Operation = paths[`/api/v1${path}`][method]
    const documented = Object.values(responses).flatMap((response) => response['x-error-codes'] ?? [])
    const successes = Object.keys(responses).filter((key) => key.startsWith('2'))
    t.same(successes, [`${status}`], route)
    for (const code of `bad_request key_access_denied ${codes}`.split(/\s+/).filter(Boolean))
      t.ok(documented.includes(code), `${route}: ${code}`)
  }
})

t.test('describes headers, content types, required bodies and implied errors', async (t) => {
  const { send } = await startTestCoordinator(t)
  const { paths } = expandDocument((await send('GET', '/openapi.json')).json)
  const exec = paths['/v1/box/{box}/exec'].post
  const codes = (operation: Operation) =>
    Object.values(operation.responses).flatMap((response) => response['x-error-codes'] ?? [])
  for (const code of ['invalid_path', 'permission_denied', 'request_timeout', 'rate_limited'])
    t.ok(codes(exec).includes(code), `exec: ${code}`)
  for (const operation of ['wake', 'suspend']) {
    const { post } = paths[`/api/v1/boxes/{id}/${operation}`]
    for (const code of ['bad_request', 'request_timeout']) t.ok(codes(post).includes(code), operation)
  }
  t.equal(exec.requestBody.required, true)
  t.equal(paths['/api/v1/boxes'].post.requestBody.required, false, 'all fields are optional')
  t.ok(exec.responses['429'].headers['Retry-After'])
  const stream = paths['/v1/box/{box}/exec/{processId}/stream'].get
  t.match(
    stream.parameters.find(({ name }: { name: string }) => name === 'Last-Event-ID'),
    { in: 'header' },
  )
  const download = paths['/v1/box/{box}/download'].get.responses['200']
  t.same(Object.keys(download.content), ['application/octet-stream', 'application/x-tar'])
  t.match(download.headers, { 'X-Service-Path': {}, 'X-Service-Content': {}, ETag: {} })
})

type DocumentedSchema = { [keyword: string]: unknown }

/** The paths of the object schemas below the value that allow no unknown field. */
function listClosed(
  value: unknown,
  path: string,
  document: { components: object },
  seen = new Set(),
): string[] {
  if (typeof value !== 'object' || value === null || seen.has(value)) return []
  seen.add(value)
  const { $ref, additionalProperties } = value as DocumentedSchema
  const closed = additionalProperties === false ? [path] : []
  const target =
    typeof $ref === 'string'
      ? ($ref.slice(2).split('/') as (keyof object)[]).reduce(
          (parent: object, name) => parent[name],
          document,
        )
      : undefined
  const children = Object.entries(target === undefined ? value : { [String($ref)]: target })
  return [
    ...closed,
    ...children.flatMap(([name, child]) => listClosed(child, `${path}/${name}`, document, seen)),
  ]
}

t.test('responses may have fields that are not described, as the text says', async (t) => {
  const { send } = await startTestCoordinator(t)
  const document = (await send('GET', '/openapi.json')).json
  const closed = Object.entries(document.paths as Record<string, Record<string, Operation>>).flatMap(
    ([path, pathItem]) =>
      Object.entries(pathItem).flatMap(([method, { responses }]) =>
        listClosed(responses, `${method} ${path}`, document),
      ),
  )
  t.same(closed, [])
  const { post } = document.paths['/api/v1/boxes']
  t.not(listClosed(post.requestBody, '', document).length, 0, 'requests have no other fields')
})

t.test('the document names the missing features', async (t) => {
  const { send } = await startTestCoordinator(t)
  const { description } = (await send('GET', '/openapi.json')).json.info
  t.match(description, /^Deliberately not provided:\n- Sandboxes: /m)
})

t.test('the text of an error fits the route, and no route lists what cannot occur', async (t) => {
  const { send } = await startTestCoordinator(t)
  const { paths } = expandDocument((await send('GET', '/openapi.json')).json)
  const describe = (method: string, path: string, status: number, code: string): string => {
    const { description } = paths[path][method].responses[status]
    return description.split('\n\n').find((line: string) => line.startsWith(`\`${code}\`:`)) ?? ''
  }
  const api = (path: string) => `/api/v1${path}`
  const edge = (path: string) => `/v1/box/{box}${path}`
  for (const [method, path, status, code, text] of [
    ['post', api('/snapshots'), 400, 'invalid_name', /name must be 1 to 64/],
    ['post', api('/boxes'), 400, 'invalid_name', /name must be 1 to 32/],
    ['post', api('/boxes/{id}/template'), 400, 'invalid_template', /name must be 1 to 64/],
    ['post', api('/boxes/{id}/resize'), 400, 'invalid_tier', /target_tier/],
    ['get', api('/audit/chain'), 400, 'invalid_cursor', /after must be the next/],
    ['get', api('/audit'), 400, 'invalid_cursor', /before must be the nextBefore/],
    ['get', api('/audit'), 400, 'invalid_time', /with Z or an offset/],
    ['post', api('/audit'), 400, 'invalid_kind', /one of exec/],
    ['post', api('/audit'), 403, 'not_allowed', /Monitor tickets.* Or: .*another origin/],
    ['post', api('/sign-in'), 403, 'not_allowed', /: This request came from a page of another origin/],
    ['get', api('/session'), 401, 'unauthorized', /needs a dashboard session/],
    ['get', api('/boxes'), 401, 'unauthorized', /API key is missing/],
    ['post', api('/boxes'), 409, 'insufficient_balance', /Only sent where billing is on/],
    ['post', api('/boxes/{id}/suspend'), 409, 'no_volume', /enrolled machine.*cannot be suspended/],
    ['patch', api('/boxes/{id}'), 409, 'no_volume', /no deadline/],
    ['post', api('/boxes/{id}/fork'), 409, 'no_volume', /not been provisioned.*deleted.*enrolled machine/],
    ['get', edge('/files'), 413, 'payload_too_large', /GET \/download/],
    ['put', edge('/files'), 413, 'payload_too_large', /PUT \/upload/],
    ['get', edge('/exec'), 400, 'invalid_path', /percent-encoded/],
    ['get', edge('/files'), 400, 'invalid_path', /path is missing/],
    ['post', edge('/exec'), 403, 'permission_denied', /cwd/],
  ] as const)
    t.match(describe(method, path, status, code), text, `${method} ${path} ${code}`)
  for (const path of [api('/me'), api('/boxes'), api('/boxes/{id}'), api('/session'), edge('/exec')])
    t.match(describe('get', path, 403, 'not_allowed'), /: This request came from a page of another origin/)
})

t.test('most operations have an example, which matches its schema', async (t) => {
  const { send } = await startTestCoordinator(t)
  const document = expandDocument((await send('GET', '/openapi.json')).json as OpenApiDocument)
  const check = createSchemaCheck(document)
  type Schema = { $ref?: string; properties?: Record<string, Schema>; items?: Schema; examples?: unknown[] }
  const schemas = document.components.schemas as Record<string, Schema>
  for (const [name, { examples = [] }] of Object.entries(schemas))
    for (const example of examples)
      t.equal(check({ $ref: `#/components/schemas/${name}` }, example), null, name)

  const resolve = (schema: Schema): Schema => schemas[schema.$ref?.split('/').at(-1) ?? ''] ?? schema
  /** Viewers compose the example of a response from those of its parts. */
  const hasExample = (schema: Schema): boolean => {
    const { examples, properties = {}, items } = resolve(schema)
    if (examples !== undefined || (items !== undefined && hasExample(items))) return true
    return (
      schema.$ref === undefined &&
      Object.values(properties).some((property) => hasExample(property.items ?? property))
    )
  }
  let withExample = 0
  for (const { operationId, requestBody, responses } of Object.values(document.paths).flatMap(
    Object.values,
  )) {
    const success = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1]
    const mediaTypes = [requestBody, success].flatMap((body) => body?.content?.['application/json'] ?? [])
    for (const { schema = {}, example } of mediaTypes)
      if (example !== undefined) t.equal(check(schema, example), null, operationId)
    if (mediaTypes.some(({ schema = {}, example }) => example !== undefined || hasExample(schema)))
      withExample++
  }
  t.ok(withExample >= 60, `${withExample} operations have an example`)
  const unknown = Object.keys(EXAMPLES).filter(
    (id) =>
      !Object.values(document.paths).some((item) => Object.values(item).some((op) => op.operationId === id)),
  )
  t.same(unknown, [], 'otherwise run `npm run docs:examples`')
})

t.test('the tests reject responses that the document does not describe', async (t) => {
  const { send, api } = await startTestCoordinator(t)
  const check = createOpenApiCheck((await send('GET', '/openapi.json')).json)
  const { status, headers, text, json } = await api('GET', '/boxes')
  const checkBoxes = (changes: Partial<CheckedResponse>) => () =>
    check('GET', '/api/v1/boxes?live=1', { status, headers, text, ...changes })
  t.doesNotThrow(checkBoxes({}))
  const [box] = json.boxes
  for (const [changes, problem] of [
    [{ status: 418 }, 'undocumented status'],
    [{ headers: new Headers({ 'content-type': 'text/html' }) }, 'undocumented content type "text/html"'],
    [{ text: '{}' }, "must have required property 'boxes'"],
    [{ text: JSON.stringify({ boxes: [{ ...box, extra: 1 }] }) }, 'must NOT have additional properties'],
    [{ text: JSON.stringify({ boxes: [{ ...box, observedState: 'lost' }] }) }, 'must be equal to one of'],
    [{ status: 404, text: '{"error":"unknown"}' }, 'undocumented'],
    [{ status: 401, text: '{"error":"unknown"}' }, 'undocumented error code unknown'],
    // Codes of the response `default` that this route cannot get, and one with the status of another.
    [{ status: 404, text: '{"error":"not_found"}' }, 'undocumented status'],
    [{ status: 408, text: '{"error":"request_timeout"}' }, 'undocumented status'],
    [{ status: 409, text: '{"error":"idempotency_in_progress"}' }, 'undocumented status'],
    [{ status: 503, text: '{"error":"internal_error"}' }, 'undocumented error code internal_error'],
  ] as const)
    t.throws(checkBoxes(changes), new RegExp(problem))
  t.throws(() => check('GET', '/api/v1/unknown', { status: 200, headers, text }), /is not documented/)
})

t.test('every field of a request or response has a type', async (t) => {
  const { send } = await startTestCoordinator(t)
  const { json } = await send('GET', '/openapi.json', undefined, { key: null })
  const isTyped = (schema: object) =>
    ['type', '$ref', 'anyOf', 'oneOf', 'allOf', 'const', 'enum'].some((keyword) => keyword in schema)
  const untyped: string[] = []
  const collectUntyped = (value: unknown, path: string) => {
    if (typeof value !== 'object' || value === null) return
    for (const [name, child] of Object.entries(value)) {
      if (name === 'properties')
        for (const [field, schema] of Object.entries(child as Record<string, object>))
          if (!isTyped(schema)) untyped.push(`${path}/${field}`)
      collectUntyped(child, `${path}/${name}`)
    }
  }
  collectUntyped(json.paths, 'paths')
  collectUntyped(json.components.schemas, 'schemas')
  t.same(untyped, [])
})

t.test('the routes of the control plane refuse unknown fields in a body', async (t) => {
  const { send, api } = await startTestCoordinator(t)
  const { json } = await send('GET', '/openapi.json', undefined, { key: null })
  type Schema = { $ref?: string; additionalProperties?: boolean; type?: string }
  const resolve = (schema: Schema): Schema =>
    schema.$ref === undefined ? schema : json.components.schemas[schema.$ref.split('/').at(-1) ?? '']
  const operations = Object.entries(json.paths as Record<string, Record<string, { requestBody?: unknown }>>)
    .filter(([path]) => path.startsWith('/api/'))
    .flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
    )
  const bodies = operations.flatMap(({ path, method, operation }) => {
    const body = operation.requestBody as { content?: Record<string, { schema: Schema }> } | undefined
    const schema = body?.content?.['application/json']?.schema
    return schema === undefined ? [] : [{ name: `${method} ${path}`, schema: resolve(schema) }]
  })
  t.ok(bodies.length > 15, `${bodies.length} bodies`)
  t.same(
    bodies.filter(({ schema }) => schema.additionalProperties !== false).map(({ name }) => name),
    [],
  )
  const { boxes } = (await api('GET', '/boxes')).json
  const refused = await api('POST', '/boxes', { snapshotId: 'snap_1' })
  t.match(refused, { status: 400, json: { error: 'bad_request', message: 'unknown field snapshotId' } })
  t.equal((await api('GET', '/boxes')).json.boxes.length, boxes.length, 'no box is created')
})
