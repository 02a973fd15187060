// The router of the agent.
import t from 'tap'
import { createJsonRouter, RequestResetError } from '../../../agent/requests/json-routes.ts'

const router = createJsonRouter()
const paths = ['/exec', '/exec/:id', '/exec/all', '/exec/:id/stream', '/a/:first/b/:second']
for (const path of paths) router.add('GET', path, () => path)
router.add('DELETE', '/exec/:id', () => 'delete')

const find = (path: string, method: 'GET' | 'DELETE' = 'GET') => {
  const { handler, params, query } = router.find(method, path)
  return [handler({} as Parameters<typeof handler>[0]), params, { ...(query as object) }]
}

t.test('finds the route, its parameters and the query', (t) => {
  t.same(find('/exec'), ['/exec', {}, {}])
  t.same(find('/exec/7'), ['/exec/:id', { id: '7' }, {}])
  t.same(find('/exec/all?x=1'), ['/exec/all', {}, { x: '1' }], 'a path without parameters comes first')
  t.same(find('/exec/7/stream?a=b%26c&a=d&e'), ['/exec/:id/stream', { id: '7' }, { a: ['b&c', 'd'], e: '' }])
  t.same(find('/a/x%20y%2Fz/b/%C3%A9'), ['/a/:first/b/:second', { first: 'x y/z', second: 'é' }, {}])
  t.same(find('/exec/7', 'DELETE'), ['delete', { id: '7' }, {}])
  t.end()
})

t.test('an unknown path, and one that is not percent-encoded, is not found', (t) => {
  for (const path of [
    '',
    '/',
    'exec',
    '/exec/',
    '/exec/7/',
    '/exec/7/other',
    '/EXEC',
    '/exec/%',
    '/exec/%ff',
    '//exec',
  ])
    t.throws(() => find(path), { code: 'not_found' }, path)
  t.throws(() => find('/exec', 'DELETE'), { code: 'not_found' })
  t.end()
})

t.test('the first request below a deferred name loads its routes', async (t) => {
  const router = createJsonRouter()
  let loads = 0
  router.defer(['files', 'upload'], async () => {
    loads += 1
    if (loads === 1) throw new Error('not loaded')
    router.add('GET', '/files/:name', ({ params, query }) => ({ params, query }))
    router.add('PUT', '/upload', () => 'uploaded')
  })
  const send = async (method: 'GET' | 'PUT', path: string, signal = new AbortController().signal) => {
    const { handler, params, query } = router.find(method, path)
    return handler({ params, query, signal } as Parameters<typeof handler>[0])
  }
  await t.rejects(send('GET', '/files/a'), { message: 'not loaded' })
  const response = { params: { name: 'a' }, query: { x: '1' } }
  t.same(await Promise.all([send('GET', '/files/a?x=1'), send('PUT', '/upload')]), [response, 'uploaded'])
  t.equal(loads, 2, 'a failed load is repeated, a complete one is not')
  t.throws(() => router.find('GET', '/upload'), { code: 'not_found' })
})

t.test('a request that is cancelled while its route loads is not executed', async (t) => {
  const router = createJsonRouter()
  router.defer(['files'], async () => router.add('GET', '/files', () => t.fail('the request is executed')))
  const { handler, params, query } = router.find('GET', '/files')
  const request = { params, query, signal: AbortSignal.abort() } as Parameters<typeof handler>[0]
  const error = await Promise.resolve(handler(request)).catch((reason: unknown) => reason)
  t.ok(error instanceof RequestResetError)
})
