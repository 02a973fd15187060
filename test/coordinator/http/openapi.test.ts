// The OpenAPI document: available without a key, complete and consistent.
import t from 'tap'
import { startTestCoordinator } from '../../support/coordinator.ts'

type Operation = {
  summary: string
  parameters?: { name: string; in: string; required?: boolean }[]
  responses: Record<string, { description: string; 'x-error-codes'?: string[] }>
}

t.test('describes every route of both hosts', async (t) => {
  const { send, url } = await startTestCoordinator(t)
  const { status, text, json } = await send('GET', '/openapi.json', undefined, { key: null })
  t.equal(status, 200)
  t.equal(json.openapi, '3.1.0')
  t.same(json.servers, [{ url }])
  t.same(json.security, [{ apiKey: [] }])
  t.equal(json.components.securitySchemes.apiKey.scheme, 'bearer')

  const paths: Record<string, Record<string, Operation>> = json.paths
  const found = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method} ${path}`),
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
  ])
    t.ok(found.includes(expected), expected)

  for (const [path, item] of Object.entries(paths)) {
    for (const [method, { summary, parameters = [], responses }] of Object.entries(item)) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const declared = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name)
      t.same(declared.sort(), named.sort(), `${method} ${path} declares its parameters`)
      t.ok(summary)
      t.ok(responses['401']?.['x-error-codes']?.includes('unauthorized'))
      t.ok(Object.keys(responses).some((code) => code.startsWith('2')))
    }
  }
  const create = paths['/api/v1/boxes']?.post
  t.match(create?.responses['400']?.['x-error-codes'], [
    'bad_request',
    'invalid_idempotency_key',
    'invalid_name',
  ])
  t.ok(create?.parameters?.some(({ name }) => name === 'Idempotency-Key'))
  t.match(json.info.description, /Sandboxes: their routes respond with 404/, 'lists what is not provided')
  t.match(json.info.description, /githubLogin.* always null/)

  const referenced = [...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name ?? '')
  for (const name of new Set(referenced)) t.ok(json.components.schemas[name], `${name} is defined`)
})
