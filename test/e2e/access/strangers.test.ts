// A client of another workspace, or without a credential, cannot find out whether something exists: the answer, its
// headers and the log are the same for what exists and for what does not.

import { pino } from 'pino'
import t from 'tap'
import { newId, newUuid } from '../../../shared/ids.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { FakeInfrastructure } from '../../support/fake-infrastructure.ts'
import { limitsEnv } from '../../support/limits-env.ts'
import { createCredentials } from './credentials.ts'
import { createRequest, type Target, WEBSOCKETS } from './requests.ts'
import { readRows } from './tables.ts'
import { createTargets } from './targets.ts'

/** Headers that differ between any two answers. */
const VARYING_HEADERS = ['date', 'set-cookie']

t.test('what exists in another workspace looks like what does not exist', async (t) => {
  const infra = new FakeInfrastructure()
  infra.agentError = 'exec_failed'
  const logLines: string[] = []
  const coordinator = await startTestCoordinator(t, {
    infra,
    env: {
      ...limitsEnv({ edgeRequestsPerSecond: 1_000_000 }),
      BOXWOOD_SIGNUP: 'open',
      BOXWOOD_OIDC_ISSUER: 'https://oidc.example.com',
      // No server listens there.
      AWS_ENDPOINT_URL_STS: 'http://127.0.0.1:1',
    },
    log: pino(
      { level: 'trace', base: null, timestamp: false },
      { write: (line: string) => void logLines.push(line) },
    ),
  })
  const credentials = createCredentials(coordinator)
  const targets = createTargets(coordinator, credentials)
  const addOwner = async (workspaceName: string) => {
    const user = await credentials.addUser(await credentials.addWorkspace(workspaceName), 'owner')
    return { user, key: (await credentials.addKey(user)).key, workspaceName }
  }
  const owner = await addOwner('tested')
  const stranger = await addOwner('strange')
  const existing: Target = await targets.add(owner)
  const missing: Target = {
    ...{ box: newUuid(), snapshot: newId('snapshot'), command: newId('process'), key: newId('apiKey') },
    ...{ operation: newId('operation'), session: newId('session'), member: newId('user') },
    ...{ enrollment: newId('enrollment'), share: newId('portShare'), environment: newId('environment') },
    ...{ secret: newId('secret'), grant: newId('secretGrant'), mount: newId('secretMount') },
    ...{ awsRole: newId('awsRole'), awsConnect: newId('awsConnect') },
    ...{ workspaceName: 'tested', workspace: newId('workspace') },
  }
  const ids = [...Object.values(existing), ...Object.values(missing)]
  /** Replaces ids, so that the rest can be compared. */
  const normalise = (text: string) =>
    ids
      .reduce((result, id) => result.replaceAll(id, 'ID'), text)
      .replace(/\b(req|ses|usr|ws|key|evt)[-_][0-9a-z]+/g, 'ID')
      .replace(/"reqId":"[^"]*"/g, '')
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')

  async function observe(
    row: ReturnType<typeof readRows>[number],
    target: Target,
    headers: Record<string, string>,
  ) {
    logLines.length = 0
    const { path, body } = createRequest(row, target)
    const response = await fetch(coordinator.url + path, {
      method: row.method,
      headers: { ...headers, ...(typeof body === 'object' && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = normalise(await response.text())
    const names = [...response.headers].filter(([name]) => !VARYING_HEADERS.includes(name))
    return { status: response.status, headers: names, text, log: logLines.map(normalise) }
  }

  const withId = readRows().filter(
    ({ path, host, route }) =>
      (host === 'edge' || path.includes('{') || route === 'POST /snapshots' || route === 'POST /audit') &&
      // Handshakes are refused before the box is looked up, unless they are complete.
      !WEBSOCKETS.includes(route),
  )
  for (const row of withId)
    for (const getHeaders of [
      async () => ({ authorization: `Bearer ${stranger.key}` }),
      async () => ({ cookie: (await credentials.addSession(stranger.user)).cookie }),
      async () => ({ authorization: `Bearer ${await credentials.addTicket(stranger.user, existing.box)}` }),
      async () => ({}),
    ]) {
      const [first, second] = [
        await observe(row, existing, await getHeaders()),
        await observe(row, missing, await getHeaders()),
      ]
      t.same(first, second, row.route)
      // Routes of operators do not read the workspace before they refuse.
      const expected = row.path.startsWith('/operator/') ? [401, 403] : [401, 404]
      t.ok(expected.includes(first.status), `${row.route}: ${first.status}`)
    }

  await t.test('names and addresses of another workspace are free', async (t) => {
    const { api, instance } = coordinator
    const { db } = instance.context
    const row = await db
      .selectFrom('boxes')
      .select('hostname')
      .where('id', '=', existing.box)
      .executeTakeFirstOrThrow()
    const { key } = stranger
    t.equal((await api('POST', '/boxes', { name: row.hostname }, { key })).status, 202)
    const edge = (box: string) => coordinator.edge(box, 'GET', '/exec', undefined, { key })
    const byName = await edge('fig-missing')
    t.match(byName, { status: 404 })
    const { cookie } = await credentials.addSession(stranger.user)
    const invite = (email: string) =>
      api('POST', '/members', { email, role: 'member' }, { key: null, headers: { cookie } })
    const [known, unknown] = [await invite(owner.user.email), await invite('unknown@example.com')]
    t.same([known.status, Object.keys(known.json)], [unknown.status, Object.keys(unknown.json)])
    for (const query of [`actor=${owner.user.id}`, `box=${existing.box}`])
      t.same((await api('GET', `/audit?${query}`, undefined, { key })).json, { events: [], nextBefore: null })
  })
})
