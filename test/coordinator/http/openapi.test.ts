// The OpenAPI document: available without a key, complete and consistent.
import t from 'tap'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { type CheckedResponse, createOpenApiCheck } from '../../support/openapi-check.ts'

type Operation = {
  summary: string
  parameters?: { name: string; in: string; required?: boolean }[]
  responses: Record<string, { description: string; 'x-error-codes'?: string[] }>
}

t.test('describes the routes of both hosts, their parameters and error codes', async (t) => {
  const { send, url } = await startTestCoordinator(t)
  const { status, text, json } = await send('GET', '/openapi.json', undefined, { key: null })
  t.equal(status, 200)
  t.equal(json.openapi, '3.1.0')
  t.same(json.servers, [{ url }])
  t.same(json.security, [{ apiKey: [] }])
  t.equal(json.components.securitySchemes.apiKey.scheme, 'bearer')

  const paths: Record<string, Record<string, Operation>> = json.paths
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
  ])
    t.ok(documentedRoutes.includes(expected), expected)

  for (const [path, pathItem] of Object.entries(paths)) {
    for (const [method, { summary, parameters = [], responses }] of Object.entries(pathItem)) {
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
      t.ok(responses['401']?.['x-error-codes']?.includes('unauthorized'))
      t.ok(Object.keys(responses).some((status) => status.startsWith('2') || status === '101'))
    }
  }
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

  const referencedSchemas = [...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(
    ([, name]) => name ?? '',
  )
  for (const name of new Set(referencedSchemas)) t.ok(json.components.schemas[name], `${name} is defined`)
})

t.test('describes headers, content types, required bodies and implied errors', async (t) => {
  const { send } = await startTestCoordinator(t)
  const { paths } = (await send('GET', '/openapi.json')).json
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
  ] as const)
    t.throws(checkBoxes(changes), new RegExp(problem))
  t.throws(() => check('GET', '/api/v1/unknown', { status: 200, headers, text }), /is not documented/)
})
