// Requests for files are activity of the box, as messages and over HTTP.
import t from 'tap'
import type { JsonMethod, JsonRequest, JsonRouter } from '../../../agent/requests/json-routes.ts'
import { query, serveFiles } from './support.ts'

t.test('each request for a file is activity', async (t) => {
  let touches = 0
  const { app, url } = await serveFiles(t, { activity: { touch: () => void touches++ } })
  const router = app.getDecorator<JsonRouter>('jsonRouter')
  const sendMessage = async (method: JsonMethod, path: string, body?: object) => {
    const { handler, ...found } = router.find(method, path)
    await handler({ ...found, body, headers: {} } as unknown as JsonRequest)
  }
  const path = query('a')
  const requests: [string, () => Promise<unknown>][] = [
    ['PUT /files as a message', () => sendMessage('PUT', '/files', { path: 'a', content: 'text' })],
    ['GET /files as a message', () => sendMessage('GET', `/files${path}`)],
    ['GET /files over HTTP', () => fetch(`${url}/files${path}`)],
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
