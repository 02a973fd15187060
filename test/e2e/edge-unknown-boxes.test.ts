// How the edge and the control plane respond for boxes that are unknown or deleted, and to ids in upper case.
import t from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'

const EDGE_REQUESTS = [
  ['GET', '/exec'],
  ['POST', '/exec', { command: 'true' }],
  ['GET', '/files?path=a'],
  ['PUT', '/upload?path=a', 'content'],
] as const

t.test('the edge responds 404 for a deleted box, by name and by id', async (t) => {
  const { api, edge, infra, waitForState } = await startTestCoordinator(t)
  const { json } = await api('GET', '/boxes')
  const { id, hostname } = json.boxes[0]
  await waitForState(id, 'running')
  const expectNotFound = async (name: string, message: string) => {
    for (const [method, path, body] of EDGE_REQUESTS) {
      const response = await edge(name, method, path, body)
      t.match(response, { status: 404, json: { error: { code: 'not_found', message } } }, `${method} ${path}`)
    }
  }

  const deleting = Promise.withResolvers<void>()
  t.teardown(deleting.resolve)
  infra.before.destroy = () => deleting.promise
  await api('DELETE', `/boxes/${id}`)
  await expectNotFound(id, `Box ${hostname} has been deleted. Use another box.`)
  await expectNotFound(hostname, `Box ${hostname} has been deleted. Use another box.`)
  deleting.resolve()
  await waitForState(id, 'terminated')
  await expectNotFound(id, `Box ${hostname} has been deleted. Use another box.`)
  await expectNotFound(hostname, `No such box: ${hostname}.`)
  t.equal((await api('GET', `/boxes/${id}/commands`)).status, 200, 'the history stays readable')
  t.equal((await api('GET', `/boxes/${id}`)).status, 200)
})

t.test('a 404 response names the box', async (t) => {
  const { api, edge } = await startTestCoordinator(t)
  const message = 'No such box: fgi. Check the name or id, and that this API key may access the box.'
  t.match((await edge('fgi', 'GET', '/exec')).json, { error: { code: 'not_found', message } })
  const { id } = (await api('GET', '/boxes')).json.boxes[0]
  const unknownId = id.replace(/^./, (digit: string) => (digit === '0' ? '1' : '0'))
  t.match((await api('GET', `/boxes/${unknownId}`)).json, {
    error: 'not_found',
    message: message.replace('fgi', unknownId),
  })
  for (const name of ['a%0Ab', 'a%20b', 'a'.repeat(65)])
    t.match((await edge(name, 'GET', '/exec')).json.error.message, /^Not found\./, name)
})

t.test('the control plane asks for an id instead of a name', async (t) => {
  const { api } = await startTestCoordinator(t)
  const { hostname } = (await api('GET', '/boxes')).json.boxes[0]
  const message = `No such box: ${hostname}. This route needs the id of the box: GET /api/v1/boxes lists names and ids.`
  for (const [method, path] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/wake'],
    ['POST', '/suspend'],
    ['GET', '/commands'],
  ] as const)
    t.match(await api(method, `/boxes/${hostname}${path}`), {
      status: 404,
      json: { error: 'not_found', message },
    })
})

t.test('accepts box ids in upper case', async (t) => {
  const { api, edge, waitForState } = await startTestCoordinator(t)
  const { json } = await api('GET', '/boxes')
  const { id } = json.boxes[0]
  await waitForState(id, 'running')
  const upper = id.toUpperCase()
  t.match(await api('GET', `/boxes/${upper}`), { status: 200, json: { box: { id } } })
  t.equal((await api('GET', `/boxes/${upper}/commands`)).status, 200)
  t.not((await edge(upper, 'GET', '/exec')).status, 404)
  t.match(await api('POST', `/boxes/${upper}/suspend`), { status: 202, json: { box: { id } } })
  t.match(await api('DELETE', `/boxes/${upper}`), { status: 202, json: { operation: { targetId: id } } })
})
