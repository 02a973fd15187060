// The router of the agent.
import t from 'tap'
import { createJsonRouter } from '../../../agent/requests/json-routes.ts'

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
