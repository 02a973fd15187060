// What a coordinator does after a change that another one has committed in their Postgres database.
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import type { Tunnel, TunnelCall, TunnelEvents } from '../../../coordinator/agents/tunnel/types.ts'
import { subscribeToAuditEvents } from '../../../coordinator/audit/service.ts'
import { createBackgroundTasks } from '../../../coordinator/base/background-tasks.ts'
import { SecretValue } from '../../../coordinator/base/sealing/secret-value.ts'
import { applyReports } from '../../../coordinator/boxes/lifecycle/apply-reports.ts'
import { createLifecycle } from '../../../coordinator/boxes/lifecycle/lifecycle.ts'
import { createVariableSender } from '../../../coordinator/boxes/variable-sender.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import {
  recordCredentialChange,
  subscribeToCredentialChanges,
} from '../../../coordinator/federation/aws/credential-changes.ts'
import { PUBLISHED_BEFORE_USE_MS } from '../../../coordinator/federation/issuer/plan-rotation.ts'
import { createSigningKeys } from '../../../coordinator/federation/issuer/signing-keys.ts'
import { Feeds } from '../../../coordinator/feed/feeds.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { authenticate } from '../../../coordinator/http/auth.ts'
import { confirmActor } from '../../../coordinator/identity/confirm-actor.ts'
import { credentialsModule } from '../../../coordinator/identity/credentials.ts'
import { createKeyService } from '../../../coordinator/identity/keys/key-service.ts'
import { createPolicyService, subscribeToPolicies } from '../../../coordinator/identity/policies/service.ts'
import { recordDueTime } from '../../../coordinator/jobs/due-times.ts'
import { createScheduler } from '../../../coordinator/jobs/scheduler.ts'
import { deleteSchedule, setSchedule } from '../../../coordinator/jobs/schedules.ts'
import { createServedShares } from '../../../coordinator/port-shares/served-shares.ts'
import { createPortShareService } from '../../../coordinator/port-shares/service.ts'
import { createShareBase } from '../../../coordinator/port-shares/share-base.ts'
import type { Provider } from '../../../coordinator/providers/provider.ts'
import { serveAllRegions } from '../../../coordinator/providers/regions.ts'
import { createSecretBroker } from '../../../coordinator/secrets/broker.ts'
import { createMountChanges } from '../../../coordinator/secrets/mount-changes.ts'
import { newApiKey } from '../../../shared/api-key.ts'
import { systemClock } from '../../../shared/clock.ts'
import { CLOSE_CODES } from '../../../shared/close-codes.ts'
import { ApiError } from '../../../shared/errors.ts'
import { createTestAdmit } from '../../support/admit.ts'
import { FakeInfrastructure } from '../../support/fake-infrastructure.ts'
import { createFakeReplica, startSharedReplica } from '../../support/replica.ts'
import { noReportHandlers } from '../../support/report-handlers.ts'
import {
  connectClient,
  openPair,
  recordNotifications,
  startSharedPostgres,
  terminateListeners,
} from '../../support/shared-databases.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { silentLog } from '../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'
import { openWebSocketPair } from '../../support/websocket-pair.ts'
import { createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

const { skip, newDatabase } = await startSharedPostgres(t)

/** Two coordinators, and the owner of their first workspace. */
async function setUp(t: Test) {
  const url = await newDatabase()
  const [here, there] = await openPair(t, url)
  return { url, here, there, owner: await createOwner(here) }
}

/** Registers open requests at the coordinator of the database. */
function createRegistry(t: Test, db: Db) {
  const { services, close } = credentialsModule({
    ...{ db, clock: systemClock, log: silentLog, background: createBackgroundTasks(silentLog) },
    config: { dataDir: createTempDir(t, 'shared-subscribers') },
  } as Parameters<typeof credentialsModule>[0])
  t.teardown(() => close.run())
  return async (secret: string) => {
    const { finders, openRequests } = services
    const { changeCount: changesBefore } = openRequests
    const check = () => authenticate({ authorization: `Bearer ${secret}` }, finders)
    const response = Object.assign(new EventEmitter(), { destroy: () => undefined })
    return openRequests.add({
      ...{ actor: await check(), changesBefore, authenticate: check },
      response: response as unknown as ServerResponse,
    })
  }
}

t.test('a key that is revoked at one coordinator ends open requests at the other', { skip }, async (t) => {
  const { url, here, there, owner } = await setUp(t)
  const keys = createKeyService({
    ...{ db: here, clock: systemClock, newApiKey },
    boxes: createTestBoxService(here),
  })
  const register = createRegistry(t, there)
  const [revoked, kept] = [await keys.create(owner, { name: 'a' }), await keys.create(owner, { name: 'b' })]
  const ended = await register(revoked.secret)
  const open = await register(kept.secret)
  await keys.revoke(owner, revoked.key.id)
  await waitUntil('the request ends', () => ended.signal.aborted)
  t.match(ended.signal.reason, { code: 'unauthorized' })
  t.ok(ended.signal.reason instanceof ApiError)
  t.equal(open.signal.aborted, false)

  // As if the notification of the revocation had been lost.
  await here.updateTable('api_keys').set({ revoked_at: 1 }).where('id', '=', kept.key.id).execute()
  await terminateListeners(await connectClient(t, url))
  await waitUntil('the request ends after the gap', () => open.signal.aborted)
})

/** Opens a feed without HTTP. */
async function openFeed(t: Test, feeds: Feeds, actor: Actor) {
  const [client, server] = await openWebSocketPair(t)
  const texts: string[] = []
  client.on('message', (data) => texts.push(String(data)))
  const closed = new Promise<number>((resolve) => client.once('close', resolve))
  client.resume()
  const { signal } = new AbortController()
  const openRequest = { signal, addCheck: async () => undefined, confirm: async () => actor }
  void feeds.serve({ actor, live: false, openRequest, accept: async () => server })
  await waitUntil('the feed has its items', () => texts.some((text) => text.includes('"ready"')))
  return { texts, closed }
}

t.test('a feed has the changes of the other coordinator', { skip }, async (t) => {
  const { url, here, there, owner } = await setUp(t)
  const feeds = new Feeds({
    db: there,
    clock: systemClock,
    log: silentLog,
    boxes: createTestBoxService(there),
  })
  t.teardown(() => feeds.close())
  const feed = await openFeed(t, feeds, owner)
  await createTestBoxService(here).create(owner, { name: 'fig' })
  await waitUntil('the box arrives', () => feed.texts.some((text) => text.includes('"fig"')))
  await terminateListeners(await connectClient(t, url))
  t.equal(await feed.closed, CLOSE_CODES.stopping, 'the client begins again after a gap')
})

t.test('reports of agents send no NOTIFY', { skip }, async (t) => {
  const { url, here, owner } = await setUp(t)
  const boxes = createTestBoxService(here)
  const { id } = await boxes.create(owner, { name: 'fig' })
  const texts = await recordNotifications(t, url)
  const report = {
    type: 'agent.started',
    at: 1,
    instanceId: 'a',
    bootId: 'b',
    agentVersion: '1.2.3',
  } as const
  await applyReports(here, noReportHandlers, [{ boxId: id, epoch: 'e', reports: [{ seq: 1, report }] }])
  await boxes.patch(owner, id, { name: 'plum' })
  await waitUntil('the next change is sent', () => texts.length > 0)
  t.equal(texts.length, 1)
  t.match(await here.selectFrom('boxes').select('boot_id').executeTakeFirst(), { boot_id: 'b' })
})

const switches = { shares: true, shareLinks: true }

t.test('links that end at one coordinator end at the other', { skip }, async (t) => {
  const { here, there, owner } = await setUp(t)
  const clock = systemClock
  const boxes = createTestBoxService(here)
  const { id: boxId } = await boxes.create(owner, { name: 'fig' })
  const served = createServedShares({ db: there, clock, log: silentLog, switches })
  const ended: [id: string, origin: string][] = []
  served.events.on('ended', (id, origin) => ended.push([id, origin]))
  const shares = createPortShareService({
    ...{ db: here, clock, boxes, switches, confirmActor },
    base: createShareBase('http://localhost:7070', []),
    admit: createTestAdmit(),
  })
  const create = async (port: number) =>
    (await shares.create(owner, boxId, { port, access: 'public' })).response.share
  const [first, second] = [await create(3000), await create(3001)]
  await shares.revoke(owner, first.id)
  await waitUntil('the link ends', () => ended.length > 0)
  t.same(ended, [[first.id, 'elsewhere']])
  const changes: unknown[] = []
  subscribeToPolicies(there, (change) => changes.push(change), { onGap: () => undefined })
  await createPolicyService({ db: here, clock }).update(owner, { shareLinks: false })
  await waitUntil('the link ends with the policy', () => ended.length > 1)
  t.same(ended[1], [second.id, 'elsewhere'])
  t.match(changes, [
    { workspaceId: owner.workspaceId, policy: { shareLinks: false }, before: { shareLinks: true } },
  ])
})

t.test('an unmounted secret is cut at the other coordinator', { skip }, async (t) => {
  const { url, here, there } = await setUp(t)
  const broker = createSecretBroker({
    db: there,
    keyring: { open: (text) => new SecretValue(text) },
    recordUse: () => undefined,
  })
  const cuts: unknown[] = []
  let gaps = 0
  broker.events.on('cut', (cut) => cuts.push(cut))
  broker.events.on('missed', () => {
    gaps += 1
  })
  const cut = { boxId: 'box', patterns: ['api.example.com'] }
  await transaction(here, async (trx) => createMountChanges().cut(trx, cut))
  await waitUntil('the cut arrives', () => cuts.length > 0)
  t.same(cuts, [cut])
  await terminateListeners(await connectClient(t, url))
  await waitUntil('cuts may have been missed', () => gaps > 0)
})

t.test('the coordinator with the agent sends variables that another one changes', { skip }, async (t) => {
  const { url, here, there, owner } = await setUp(t)
  const events = new EventEmitter<TunnelEvents>()
  const sent: object[] = []
  const call = async ({ body = '' }: TunnelCall) => {
    sent.push(JSON.parse(body).env)
    return { status: 204, body: Buffer.alloc(0) }
  }
  const boxes = createTestBoxService(here)
  const { id } = await boxes.create(owner, { name: 'fig', env: { KEY: 'a' } })
  const tunnel = { boxId: id, call } as Partial<Tunnel> as Tunnel
  const sender = createVariableSender({
    ...{ db: there, log: silentLog },
    tunnels: Object.assign(events, { local: () => tunnel }),
  })
  t.teardown(() => sender.close())
  events.emit('connected', tunnel)
  await waitUntil('the agent has the variables', () => sent.length === 1)
  await boxes.patch(owner, id, { env: { KEY: 'b' } })
  await waitUntil('the agent has the new ones', () => sent.length === 2)
  t.same(sent, [{ KEY: 'a' }, { KEY: 'b' }])
  await terminateListeners(await connectClient(t, url))
  await waitUntil('they are sent again after a gap', () => sent.length === 3)
})

t.test('a schedule that one coordinator writes runs at the other in time', { skip }, async (t) => {
  const { here, there } = await setUp(t)
  const clock = systemClock
  const scheduler = createScheduler({ db: there, clock, log: silentLog, replica: createFakeReplica() })
  t.teardown(() => scheduler.close())
  const runs: string[] = []
  scheduler.add({
    handlers: {
      async test(targetId) {
        runs.push(targetId)
        await transaction(there, (trx) => deleteSchedule(trx, { kind: 'test', target_id: targetId }))
        return undefined
      },
    },
  })
  await scheduler.start()
  await waitUntil('the first schedules have run', async () => (await listDue(there, clock.now())) === 0)
  await transaction(here, async (trx) => {
    const dueAt = clock.now()
    await setSchedule(trx, { kind: 'test', target_id: 'target' }, dueAt)
    recordDueTime(trx, dueAt)
  })
  await waitUntil('it has run', () => runs.length > 0)
  t.same(runs, ['target'])
})

async function listDue(db: Db, now: number): Promise<number> {
  return (await db.selectFrom('schedules').select('kind').where('due_at', '<=', now).execute()).length
}

t.test('a wake at one coordinator is run by the other, and noticed', { skip }, async (t) => {
  const { here, there, owner } = await setUp(t)
  const infra = new FakeInfrastructure()
  const start = async (db: Db, provider: Provider) => {
    const lifecycle = createLifecycle({
      ...{ db, clock: systemClock, log: silentLog, tunnels: infra.tunnels },
      replica: await startSharedReplica(db),
      providers: serveAllRegions(provider),
      ingest: { apply: async () => undefined },
      coordinatorUrl: 'http://127.0.0.1:7070',
      agentReconnectMs: 0,
    })
    t.teardown(() => lifecycle.close())
    return lifecycle
  }
  // Only the second one is started. Its runner has no other reason to read the job before a minute.
  const waiting = await start(here, infra.provider)
  const running = await start(there, infra.provider)
  await running.start()
  const { id } = await createTestBoxService(here).create(owner, { name: 'fig' })
  const tunnel = await waiting.waitUntilRunning(id, DEADLINE_MS)
  t.equal(tunnel.boxId, id)
  const job = await here.selectFrom('jobs').select('op').where('box_id', '=', id).execute()
  t.same(job, [])
})

t.test('AWS roles and audit events', { skip }, async (t) => {
  const { here, there, owner } = await setUp(t)
  const received: unknown[] = []
  const onGap = () => undefined
  subscribeToCredentialChanges(there, (change) => received.push(change), { onGap })
  subscribeToAuditEvents(there, (workspaceId) => received.push(`events of ${workspaceId}`), { onGap })
  const { workspaceId } = owner
  await transaction(here, async (trx) => recordCredentialChange(trx, { workspaceId }))
  await createPolicyService({ db: here, clock: systemClock }).update(owner, { autoPauseFloorMin: 60 })
  await waitUntil('both have arrived', () => received.length === 2)
  t.same(received, [{ workspaceId }, `events of ${workspaceId}`])
})

t.test('a key that one coordinator rotates is not used by the other', { skip }, async (t) => {
  const { here, there } = await setUp(t)
  const clock = createTestClock()
  const keyring = {
    seal: (value: SecretValue) => ({ sealed: value.reveal(), keyId: 'k1' }),
    open: (sealed: string) => new SecretValue(sealed),
  }
  const [keys, others] = [here, there].map((db) => createSigningKeys({ db, clock, keyring }))
  const before = await keys?.getActive()
  t.equal((await others?.getActive())?.id, before?.id)
  clock.advance(PUBLISHED_BEFORE_USE_MS)
  const rotation = await keys?.rotate(() => undefined)
  t.equal(rotation?.rotated, true)
  await waitUntil(
    'the other one uses the new key',
    async () => (await others?.getActive())?.id === rotation?.activeKeyId,
  )
})
