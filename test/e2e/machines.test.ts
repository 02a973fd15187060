// Enrolled machines over HTTP: tokens, their exchange, the states of the box, refusals, and deletion.
import t, { type Test } from 'tap'
import { newBoxToken } from '../../shared/ids.ts'
import { type RequestOptions, startTestCoordinator, type TestCoordinator } from '../support/coordinator.ts'
import {
  connectMachine,
  createLineageId,
  type EnrolledMachine,
  enrollMachine,
  exchange,
  hashToken,
  requestToken,
} from '../support/enroll.ts'
import { FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { skipOnReplicas } from '../support/on-replicas.ts'
import { createTestSession } from '../support/session.ts'
import { DEADLINE_MS, waitUntil } from '../support/wait-until.ts'
import { createTestClock } from '../support/workspace.ts'

/** Boxes with machines in memory, and real tunnels for the agents of enrolled machines. */
const startCoordinator = (t: Test, options: Parameters<typeof startTestCoordinator>[1] = {}) =>
  startTestCoordinator(t, { machines: 'local', provider: new FakeInfrastructure().provider, ...options })

async function createToken(
  coordinator: TestCoordinator,
  body: object = {},
  session?: RequestOptions,
): Promise<string> {
  const { status, json } = await (session === undefined
    ? requestToken(coordinator, body)
    : coordinator.api('POST', '/machines', body, session))
  if (status !== 201) throw new Error(JSON.stringify(json))
  return json.token
}

async function connect(t: Test, coordinator: TestCoordinator, machine: EnrolledMachine) {
  const agent = await connectMachine(machine, coordinator.url)
  t.teardown(() => agent.close())
  await coordinator.waitForState(machine.boxId, 'running')
  return agent
}

t.test('a machine becomes a box when its agent connects', async (t) => {
  const coordinator = await startCoordinator(t)
  const created = await requestToken(coordinator, { name: 'fig', env: { A: 'b' } })
  t.equal(created.status, 201)
  const { enrollment, token, command } = created.json
  t.match(enrollment, { id: /^enr_/, name: 'fig', region: 'us-west-2', restricted: false })
  t.match(token, /^bxe_[0-9A-Za-z]{38}$/)
  t.equal(command, `curl -fsSL ${coordinator.url}/install.sh | sh -s -- --token ${token}`)
  t.same((await coordinator.api('GET', '/machines')).json.enrollments, [enrollment])

  const machine = await enrollMachine(coordinator)
  t.equal(machine.name, 'build-server', 'the hostname of the machine')
  const { json } = await coordinator.api('GET', `/boxes/${machine.boxId}`)
  t.match(json.box, { kind: 'machine', tier: 'flow', observedState: 'bootstrapping' })
  t.match(json.job, { op: 'enroll', step: 'connect', nextRetryAt: null })

  await connect(t, coordinator, machine)
  const detail = await coordinator.api('GET', `/boxes/${machine.boxId}`)
  t.match(detail.json.box, { kind: 'machine', hostname: 'build-server', isolation: null })
  t.equal(detail.json.job, null)
  const named = await exchange(coordinator.url, token)
  t.match(named, { status: 201, json: { name: 'fig' } })
  const box = await coordinator.api('GET', `/boxes/${named.json.boxId}`)
  t.same(box.json.envVars, [{ name: 'A', value: 'b' }])
  t.same((await coordinator.api('GET', '/machines')).json.enrollments, [], 'used tokens are not listed')
})

t.test('the agent that used a token may repeat the exchange; another one may not', async (t) => {
  const coordinator = await startCoordinator(t)
  const token = await createToken(coordinator, { name: 'fig' })
  const agentTokenHash = hashToken(newBoxToken())
  const own = await Promise.all([1, 2].map(() => exchange(coordinator.url, token, { agentTokenHash })))
  t.same(
    own.map(({ status }) => status),
    [201, 201],
  )
  t.equal(own[0]?.json.boxId, own[1]?.json.boxId, 'one box')
  const other = await exchange(coordinator.url, token)
  t.match(other, { status: 401, json: { error: 'unauthorized' } })
  t.match(other.json.message, /was used at \d{4}-.* for box fig\. A token works once/)

  const contested = await createToken(coordinator, { name: 'plum' })
  const answers = await Promise.all([1, 2, 3, 4].map(() => exchange(coordinator.url, contested)))
  t.same(answers.map(({ status }) => status).sort(), [201, 401, 401, 401], 'one of four agents')

  await coordinator.api('DELETE', `/boxes/${own[0]?.json.boxId}`)
  const deleted = await exchange(coordinator.url, token, { agentTokenHash })
  t.match(deleted, { status: 401, json: { message: /for a box that has been deleted/ } })
})

t.test('a token that cannot be used is refused with its reason', async (t) => {
  const coordinator = await startCoordinator(t)
  const { api, url } = coordinator
  const { context, owner } = coordinator.instance
  const { db, clock } = context
  const assertRefused = async (token: string, status: number, error: string, message: RegExp) =>
    t.match(await exchange(url, token), { status, json: { error, message } }, error)

  await assertRefused('bxe_0', 401, 'unauthorized', /incomplete or mistyped/)
  const unknown = await createToken(coordinator)
  await assertRefused(unknown.slice(0, -1), 401, 'unauthorized', /incomplete or mistyped/)
  await db.deleteFrom('enrollments').execute()
  await assertRefused(unknown, 401, 'unauthorized', /does not know the token/)

  const expired = await createToken(coordinator)
  await db.updateTable('enrollments').set({ expires_at: clock.now() }).execute()
  await assertRefused(expired, 401, 'token_expired', /expired at .*box machine add/)
  t.same((await api('GET', '/machines')).json.enrollments, [])

  const revoked = await requestToken(coordinator, {})
  const path = `/machines/${revoked.json.enrollment.id}`
  t.equal((await api('DELETE', path)).status, 204)
  t.equal((await api('DELETE', path)).status, 204, 'again')
  await assertRefused(revoked.json.token, 401, 'unauthorized', /has been revoked/)
  t.match(await api('DELETE', '/machines/enr_0'), { status: 404 })

  const used = await requestToken(coordinator, {})
  await exchange(url, used.json.token)
  const usedPath = `/machines/${used.json.enrollment.id}`
  t.match(await api('DELETE', usedPath), { status: 404, json: { message: /has been used.*box rm/ } })

  const member = await createTestSession(coordinator, 'member')
  const ofMember = await createToken(coordinator, {}, member)
  await db
    .insertInto('policies')
    .values({
      ...{ workspace_id: owner?.workspaceId ?? '', policy: '{"machineEnrollment":"owner"}' },
      ...{ updated_by: null, updated_at: clock.now() },
    })
    .execute()
  await assertRefused(ofMember, 403, 'policy_denied', /Only owners/)
  const denied = await api('POST', '/machines', {}, member)
  t.match(denied, { status: 403, json: { error: 'policy_denied', rule: 'machineEnrollment' } })
  t.equal((await requestToken(coordinator)).status, 201, 'an owner')
  await db.deleteFrom('policies').execute()

  const setKind = (credential_kind: 'api' | 'session') =>
    db.updateTable('enrollments').set({ credential_kind }).where('used_at', 'is', null).execute()
  await setKind('api')
  await assertRefused(ofMember, 401, 'unauthorized', /created with an API key/)
  await setKind('session')
  await db.updateTable('users').set({ role: 'contractor' }).where('role', '=', 'member').execute()
  await assertRefused(ofMember, 403, 'not_allowed', /role/)
  await db.updateTable('users').set({ removed_at: clock.now() }).where('role', '=', 'contractor').execute()
  await assertRefused(ofMember, 401, 'unauthorized', /not a member any more/)

  const closing = await createToken(coordinator)
  await db.updateTable('workspaces').set({ closing_at: clock.now() }).execute()
  await assertRefused(closing, 409, 'workspace_closing', /closing/)
  t.match(await requestToken(coordinator, {}), { status: 409, json: { error: 'workspace_closing' } })
})

t.test('a malformed exchange is refused', async (t) => {
  const coordinator = await startCoordinator(t)
  const token = await createToken(coordinator)
  for (const change of [
    { agentTokenHash: 'A'.repeat(64) },
    { platform: 'darwin-arm64' as 'linux-x64' },
    { cpus: 0 },
    { memoryBytes: 1.5 },
    { agentVersion: '' },
    { hostname: 'a'.repeat(256) },
  ])
    t.match(await exchange(coordinator.url, token, change), { status: 400, json: { error: 'bad_request' } })
  const get = await fetch(`${coordinator.url}/agent/enroll`, { headers: { authorization: 'Bearer x' } })
  t.equal(get.status, 401, 'GET')
  t.equal((await exchange(coordinator.url, token)).status, 201, 'the token has not been used')
})

t.test('the name of a machine is free when its token is created, and when it is used', async (t) => {
  const coordinator = await startCoordinator(t)
  const { api, url } = coordinator
  const token = await createToken(coordinator, { name: 'fig' })
  const created = await api('POST', '/boxes', { name: 'fig' })
  t.match(await requestToken(coordinator, { name: 'fig' }), { status: 409, json: { error: 'name_taken' } })
  t.match(await exchange(url, token), { status: 409, json: { error: 'name_taken', message: /fig/ } })
  await coordinator.waitForState(created.json.box.id, 'bootstrapping')
  await api('DELETE', `/boxes/${created.json.box.id}`)
  await coordinator.waitForState(created.json.box.id, 'terminated')
  t.match(await exchange(url, token), { status: 201, json: { name: 'fig' } }, 'the token was not used')

  const hostname = 'fig'
  const unnamed = await exchange(url, await createToken(coordinator), { hostname })
  t.match(unnamed, { status: 201 })
  t.not(unnamed.json.name, 'fig', 'the hostname is taken')
  t.match(await requestToken(coordinator, { name: 'Fig' }), { status: 400, json: { error: 'invalid_name' } })
  t.match(await requestToken(coordinator, { region: 'x' }), {
    status: 400,
    json: { error: 'invalid_region' },
  })
  t.match(await requestToken(coordinator, { env: { 1: '' } }), {
    status: 400,
    json: { error: 'invalid_env' },
  })
})

t.test('too many requests of an address are limited', { skip: skipOnReplicas() }, async (t) => {
  const coordinator = await startCoordinator(t, { addressLimitFactor: 1 / 300 })
  t.equal((await exchange(coordinator.url, 'bxe_0')).status, 401)
  t.match(await exchange(coordinator.url, 'bxe_0'), { status: 429, json: { error: 'rate_limited' } })
})

t.test('what a machine cannot do is refused with its code', async (t) => {
  const coordinator = await startCoordinator(t)
  const { api } = coordinator
  const machine = await enrollMachine(coordinator)
  await connect(t, coordinator, machine)
  const path = `/boxes/${machine.boxId}`
  const later = new Date(Date.now() + 3_600_000).toISOString()
  const refused: [method: string, path: string, body: object | undefined, status: number, code: string][] = [
    ['POST', '/snapshots', { boxId: machine.boxId, name: 'a' }, 409, 'no_volume'],
    ['POST', `${path}/fork`, {}, 409, 'no_volume'],
    ['POST', `${path}/template`, { name: 'a' }, 409, 'no_volume'],
    ['POST', `${path}/suspend`, undefined, 409, 'no_volume'],
    ['POST', `${path}/suspend?stop=1`, undefined, 409, 'no_volume'],
    ['PATCH', path, { autoPauseMin: 30 }, 409, 'no_volume'],
    ['PATCH', path, { ttlMinutes: 5 }, 409, 'no_volume'],
    ['PATCH', path, { pauseAt: later }, 409, 'no_volume'],
    ['PATCH', path, { autoSnapshotHours: 1 }, 409, 'no_volume'],
    ['PATCH', path, { autoSnapshotKeep: 1 }, 409, 'no_volume'],
    ['POST', `${path}/resize`, { target_tier: 'nano' }, 400, 'resize_rejected'],
    ['POST', `${path}/region`, { region: 'eu-central-1' }, 400, 'move_rejected'],
  ]
  for (const [method, refusedPath, body, status, error] of refused) {
    const label = `${method} ${refusedPath} ${JSON.stringify(body)}`
    const response = await api(method, refusedPath, body)
    t.match(response, { status, json: { error, message: /build-server is an enrolled machine/ } }, label)
  }
  for (const [method, refusedPath, body, message] of [
    ['POST', `${path}/fork`, {}, /cannot copy its disk/],
    ['POST', `${path}/suspend`, undefined, /cannot be suspended/],
    ['PATCH', path, { autoPauseMin: 30 }, /cannot have a deadline/],
  ] as const)
    t.match((await api(method, refusedPath, body)).json, { error: 'no_volume', message })
  t.match(await api('PATCH', path, { autoPauseMin: null, ttlMinutes: null }), { status: 200 })
  t.match(await api('PATCH', path, { env: { A: 'b' } }), {
    status: 200,
    json: { box: { envVars: [{ name: 'A', value: 'b' }] } },
  })
  t.match(await api('POST', `${path}/wake`), { status: 202, json: { box: { observedState: 'running' } } })
  t.match(await api('POST', `${path}/resize`, { target_tier: 'flow' }), { status: 202 }, 'the same tier')
})

t.test('a machine is given to a member, and deleted after a time', async (t) => {
  const clock = createTestClock()
  const coordinator = await startCoordinator(t, { clock })
  const { api } = coordinator
  const machine = await enrollMachine(coordinator)
  await connect(t, coordinator, machine)
  const path = `/boxes/${machine.boxId}`
  const { userId } = await createTestSession(coordinator, 'member')
  t.match(await api('POST', `${path}/owner`, { ownerUserId: userId }), {
    status: 200,
    json: { box: { ownerUserId: userId } },
  })
  t.match(await api('PATCH', path, { deleteAfterMinutes: 5 }), {
    status: 200,
    json: { box: { deleteAt: String } },
  })
  clock.advance(5 * 60_000)
  coordinator.instance.context.scheduler.runDue()
  await waitUntil('the machine is deleted', async () => {
    return (await api('GET', path)).json.box.desiredState === 'terminated'
  })
})

t.test('a disconnected machine is degraded until it reconnects, also over a restart', async (t) => {
  const lifecycle = { disconnectGraceMs: 20 }
  const provider = new FakeInfrastructure().provider
  const first = await startCoordinator(t, { provider, lifecycle })
  const [machine, offline] = [await enrollMachine(first), await enrollMachine(first)]
  const agent = await connect(t, first, machine)
  await agent.close()
  await first.waitForState(machine.boxId, 'degraded')
  t.match((await first.api('GET', `/boxes/${machine.boxId}`)).json.job, {
    op: 'reconnect',
    nextRetryAt: null,
  })
  const refused = await first.edge(machine.name, 'POST', '/exec', { command: 'true' })
  t.match(refused.json, { error: { code: 'box_unreachable', message: /machine that is not connected/ } })
  const again = await connect(t, first, machine)
  const { json } = await first.api('GET', `/boxes/${machine.boxId}`)
  t.match(json.events, [
    { fromState: 'degraded', toState: 'running', reason: 'its agent has reconnected' },
    { fromState: 'running', toState: 'degraded', reason: 'the agent of the box disconnected' },
    { fromState: 'bootstrapping', toState: 'running', reason: 'enrolled' },
    { fromState: null, toState: 'bootstrapping', reason: 'enrolled' },
  ])
  await again.close()
  await first.waitForState(machine.boxId, 'degraded')
  // Suspends the other boxes.
  await first.close()

  const second = await startCoordinator(t, { provider, lifecycle, dataDir: first.dataDir })
  t.match((await second.api('GET', `/boxes/${machine.boxId}`)).json.box, { observedState: 'degraded' })
  await connect(t, second, machine)
  await connect(t, second, offline)
})

t.test('deleting a machine uninstalls its agent', async (t) => {
  const coordinator = await startCoordinator(t)
  const { api, url } = coordinator
  const [connected, offline] = [await enrollMachine(coordinator), await enrollMachine(coordinator)]
  const requests: string[] = []
  const statuses: (string | undefined)[] = []
  const agent = await connectMachine(
    connected,
    url,
    (router) => router.add('POST', '/uninstall', () => void requests.push('/uninstall')),
    { onDisconnected: ({ status, code }) => void statuses.push(`${status} ${code}`) },
  )
  t.teardown(() => agent.close())
  await coordinator.waitForState(connected.boxId, 'running')
  for (const { boxId } of [connected, offline]) {
    const { json } = await api('DELETE', `/boxes/${boxId}`)
    await coordinator.waitForState(boxId, 'terminated')
    t.match(await api('GET', `/operations/${json.operation.id}`), {
      json: { operation: { status: 'completed' } },
    })
  }
  t.same(requests, ['/uninstall'])
  await waitUntil('the agent is refused', async () => statuses.includes('410 box_deleted'))

  const refused = new Promise((resolve) => {
    const onDisconnected = ({ status, code }: { status?: number; code?: string }) =>
      resolve(`${status} ${code}`)
    void connectMachine(offline, url, undefined, { onDisconnected }).then((late) =>
      t.teardown(() => late.close()),
    )
  })
  t.equal(await refused, '410 box_deleted', 'a machine that was deleted before it connected')
  const wrongToken = { ...offline, token: newBoxToken() }
  const unknown = new Promise((resolve) => {
    void connectMachine(wrongToken, url, undefined, { onDisconnected: ({ status }) => resolve(status) }).then(
      (late) => t.teardown(() => late.close()),
    )
  })
  t.equal(await unknown, 401, 'another token')
  t.equal(
    (await coordinator.instance.context.db.selectFrom('deleted_machines').selectAll().execute()).length,
    2,
  )
})

t.test('a copy of a disk is refused', async (t) => {
  const coordinator = await startCoordinator(t)
  const machine = await enrollMachine(coordinator)
  const disk = machine.lineage
  const connectOnce = async (lineage: string[]): Promise<unknown> => {
    const answer = Promise.withResolvers<unknown>()
    const agent = await connectMachine({ ...machine, lineage }, coordinator.url, undefined, {
      onConnected: () => answer.resolve('connected'),
      onDisconnected: ({ status, code, message }) => answer.resolve({ status, code, message }),
    })
    const result = await answer.promise
    await agent.close()
    await waitUntil('the agent is disconnected', async () => {
      const { json } = await coordinator.api('GET', `/boxes/${machine.boxId}`)
      return json.state.connected === false
    })
    return result
  }
  t.equal(await connectOnce(disk), 'connected')
  const original = [createLineageId(), ...disk]
  t.equal(await connectOnce(original), 'connected', 'the next process of the machine')
  t.equal(await connectOnce(original), 'connected', 'a reconnect')
  const copy = [createLineageId(), ...disk]
  t.match(await connectOnce(copy), {
    ...{ status: 409, code: 'machine_cloned' },
    message: /build-server.*copy of its disk.*enroll this machine as a new box/,
  })
  t.match(await connectOnce([]), { status: 400, code: 'bad_request' }, 'no lineage')
  const tooMany = Array.from({ length: 33 }, createLineageId)
  t.match(await connectOnce(tooMany), { status: 400, code: 'bad_request' }, 'too many ids')

  // A coordinator that was restored from a backup knows an older process.
  const { db } = coordinator.instance.context
  await db
    .updateTable('boxes')
    .set({ agent_lineage: disk[0] ?? '' })
    .where('id', '=', machine.boxId)
    .execute()
  t.equal(await connectOnce([createLineageId(), ...original]), 'connected')

  const running = await connectMachine(
    { ...machine, lineage: [createLineageId(), ...original] },
    coordinator.url,
  )
  t.teardown(() => running.close())
  await db.updateTable('boxes').set({ agent_lineage: null }).where('id', '=', machine.boxId).execute()
  await coordinator.instance.context.agentConnections.wait(machine.boxId, DEADLINE_MS)
  const second = Promise.withResolvers<unknown>()
  const late = await connectMachine({ ...machine, lineage: original }, coordinator.url, undefined, {
    onDisconnected: second.resolve,
  })
  t.teardown(() => late.close())
  t.match(await second.promise, { status: 409, code: 'box_already_connected', message: /copy of the disk/ })
})

t.test('machines and tokens are in the audit log', async (t) => {
  const coordinator = await startCoordinator(t)
  const { api } = coordinator
  const token = await requestToken(coordinator, { name: 'fig' })
  await exchange(coordinator.url, token.json.token)
  const unused = await requestToken(coordinator, {})
  await api('DELETE', `/machines/${unused.json.enrollment.id}`)
  const kinds = 'machine.token_create,machine.token_revoke,machine.enroll'
  const { json, text } = await api('GET', `/audit?kind=${kinds}`)
  t.match(json.events, [
    { kind: 'machine.token_revoke' },
    { kind: 'machine.token_create' },
    { kind: 'machine.enroll', detail: { name: 'fig', hostname: 'build-server.example.com', tier: 'flow' } },
    { kind: 'machine.token_create', detail: { name: 'fig', region: 'us-west-2' } },
  ])
  t.notMatch(text, /bxe_/)
})
