// An owner sends the audit log to an HTTPS endpoint over the API, and the endpoint receives what happens.
import t from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { startCollector } from '../support/https-collector.ts'
import { requires } from '../support/requires.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'

const URL_RULE = /^url must be an https URL of at most 2048 characters/

t.test('the export of the audit log', { skip: requires('openssl') }, async (t) => {
  const collector = await startCollector(t)
  const { ca, resolve, url, received } = collector
  const env = { BOXWOOD_AUDIT_SINK_PRIVATE: 'on' }
  const coordinator = await startTestCoordinator(t, { env, auditExport: { ca, resolve } })
  const { api } = coordinator
  const session = await createTestSession(coordinator)
  const put = (body: unknown) => api('PUT', '/audit/sink', body, session)

  await t.test('there is none at first', async (t) => {
    const { status, json } = await api('GET', '/audit/sink', undefined, session)
    t.equal(status, 200)
    t.same(json, { sink: null })
    t.equal((await api('DELETE', '/audit/sink', undefined, session)).status, 204)
  })

  await t.test('only owners with a session configure it', async (t) => {
    const member = await createTestSession(coordinator, 'member')
    const contractor = await createTestSession(coordinator, 'contractor')
    for (const [method, body] of [['GET'], ['PUT', { url }], ['DELETE']] as const) {
      const send = (options?: typeof session) => api(method, '/audit/sink', body, options)
      t.match(await send(), { status: 401, json: { error: 'unauthorized' } })
      t.match(await send(member), { status: 403, json: { error: 'not_owner' } })
      t.match(await send(contractor), { status: 403, json: { error: 'not_allowed' } })
    }
  })

  await t.test('rejects what is not an https URL', async (t) => {
    const withoutCredentials = [
      ...['http://siem.example.com', 'https://', 'siem.example.com', 'https://a#b', 'ftp://a', '', 7, null],
      `https://a/${'x'.repeat(2048)}`,
    ]
    for (const text of [...withoutCredentials, 'https://user:secret@a', 'https://user@a'])
      t.match(await put({ url: text }), { status: 400, json: { error: 'bad_request', message: URL_RULE } })
    for (const body of [{}, { url, from: 'end' }, { url, form: 'now' }])
      t.equal((await put(body)).status, 400)
  })

  await t.test('delivers what has happened and what happens', async (t) => {
    const { json } = await put({ url, from: 'start' })
    t.match(json, { sink: { url, attempt: 0 }, secret: /^whsec_/ })
    await api('POST', '/boxes', { name: 'fig' })
    const readSink = async () => (await api('GET', '/audit/sink', undefined, session)).json.sink
    await waitUntil('all events are delivered', async () => (await readSink()).pending === 0)
    const delivered = received.flatMap(({ body }) => JSON.parse(body).events)
    const { events } = (await api('GET', '/audit?limit=1000')).json
    t.same(delivered, events.toReversed(), 'in the form of GET /audit')
    const { host } = new URL(url)
    const update = events.find(({ kind }: { kind: string }) => kind === 'audit_sink.update')
    t.match(update, { detail: { host, from: 'start' }, actorUserId: session.userId })
    t.notMatch(JSON.stringify(events), '/events', 'no path, which may be a secret')
    t.match((await put({ url })).json, { secret: null })
    t.notMatch(JSON.stringify(await readSink()), 'whsec_')
    t.equal((await api('DELETE', '/audit/sink', undefined, session)).status, 204)
    t.equal(await readSink(), null)
  })

  await t.test('a closing workspace keeps its endpoint, but gets no other one', async (t) => {
    await put({ url })
    await coordinator.instance.context.db.updateTable('workspaces').set({ closing_at: 1 }).execute()
    t.match(await put({ url: `${url}/other` }), { status: 409, json: { error: 'workspace_closing' } })
    t.match((await api('GET', '/audit/sink', undefined, session)).json, { sink: { url } })
    t.equal((await api('DELETE', '/audit/sink', undefined, session)).status, 204)
  })
})
