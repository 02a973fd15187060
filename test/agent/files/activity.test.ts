// Requests for files are activity of the box.
import t from 'tap'
import { callRoute } from '../../support/agent-routes.ts'
import { query, serveFiles } from './support.ts'

t.test('each request for a file is activity', async (t) => {
  let touches = 0
  const { router, url } = await serveFiles(t, { activity: { touch: () => void touches++ } })
  const path = query('a')
  const requests: [string, () => Promise<unknown>][] = [
    [
      'PUT /files',
      () => callRoute(router, { method: 'PUT', path: '/files', body: { path: 'a', content: 'text' } }),
    ],
    ['GET /files', () => callRoute(router, { path: `/files${path}` })],
    ['GET /download', () => fetch(`${url}/download${path}`)],
    ['GET /files/list', () => fetch(`${url}/files/list${query('~')}`)],
    ['DELETE /files', () => fetch(`${url}/files${path}`, { method: 'DELETE' })],
    ['PUT /upload', () => fetch(`${url}/upload${path}`, { method: 'PUT', body: 'text' })],
  ]
  for (const [name, request] of requests) {
    const before = touches
    await request()
    t.equal(touches, before + 1, name)
  }
})
