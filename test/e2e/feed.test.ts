// GET /feed: the lists of boxes, snapshots and operations with their changes, over a WebSocket.
import t, { type Test } from 'tap'
import { updateBox } from '../../coordinator/boxes/store/boxes.ts'
import { transaction } from '../../coordinator/db/transaction.ts'
import type { Box } from '../../shared/api/boxes.ts'
import { CLOSE_CODES } from '../../shared/close-codes.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { RefusedError } from '../support/attach-client.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { connectFeed, type FeedClient } from '../support/feed-client.ts'
import { skipOnReplicas } from '../support/on-replicas.ts'
import { createTestSession } from '../support/session.ts'
import { DEADLINE_MS, waitUntil } from '../support/wait-until.ts'
import { createCredentials } from './access/credentials.ts'
import { createRunningBox, takeSnapshot } from './snapshots-support.ts'

const coordinator = await startTestCoordinator(t)
const { url, api, key, infra, waitForState } = coordinator
const { db } = coordinator.instance.context
const credentials = createCredentials(coordinator)
const session = await createTestSession(coordinator)
const workspaceId = coordinator.instance.owner?.workspaceId ?? ''
const owner = { id: session.userId, workspaceId, email: '' }
const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` })
const cookie = { cookie: session.headers?.cookie ?? '' }

const connect = async (t: Test, headers: Record<string, string> = bearer(key), query = '') => {
  const feed = await connectFeed(t, url, headers, { query })
  await feed.ready()
  return feed
}

/** The response to a refused handshake. */
const refuse = (headers: Record<string, string>): Promise<RefusedError> =>
  connectFeed(t, url, headers).then(
    () => Promise.reject(new Error('the feed was accepted')),
    (error: RefusedError) => error,
  )

const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)
const idsOf = (items: { id: string }[]) => items.map(({ id }) => id)
const withState = (feed: FeedClient, id: string, state: Box['observedState']) =>
  waitUntil(`the feed has the box in state ${state}`, () => {
    const box = feed.get('boxes', id) as Box | undefined
    return box?.observedState === state && box
  })

async function waitForLists(feed: FeedClient, headers = bearer(key), query = '') {
  const read = async (path: string) => (await api('GET', path, undefined, { key: null, headers })).json
  await waitUntil('the feed has the lists', async () => {
    const [{ boxes }, { snapshots }] = [await read(`/boxes${query}`), await read('/snapshots')]
    const isEqual = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)
    return (
      isEqual(feed.list('boxes'), boxes.sort(byId)) && isEqual(feed.list('snapshots'), snapshots.sort(byId))
    )
  })
}

t.test('begins with the lists, and continues with each kind of change', async (t) => {
  const fig = await createRunningBox(coordinator, { name: 'fig' })
  const feed = await connect(t)
  t.equal(feed.messages.at(-1)?.type, 'ready')
  await waitForLists(feed)

  const { json } = await api('POST', '/boxes', { name: 'plum' })
  const plum = json.box.id
  await withState(feed, plum, 'running')
  await waitForLists(feed)
  await api('PATCH', `/boxes/${plum}`, { name: 'prune' })
  await waitUntil('the box has its new name', () => (feed.get('boxes', plum) as Box).hostname === 'prune')

  await takeSnapshot(coordinator, plum, 'first')
  await waitForLists(feed)
  const [snapshot = { id: '' }] = feed.list('snapshots')
  t.match(snapshot, { name: 'first', status: 'available', sourceBoxHostname: 'prune' })
  // Renames the snapshots of the box too.
  await api('PATCH', `/boxes/${plum}`, { name: 'plum' })
  await waitForLists(feed)
  t.match(feed.list('snapshots'), [{ sourceBoxHostname: 'plum' }])
  await api('POST', `/boxes/${plum}/suspend`)
  await withState(feed, plum, 'suspended')
  await api('POST', `/boxes/${plum}/wake`)
  await withState(feed, plum, 'running')

  const removal = (await api('DELETE', `/snapshots/${snapshot.id}`)).json.operation
  await waitUntil('the snapshot is removed', () => feed.get('snapshots', snapshot.id) === undefined)
  await waitUntil('its operation is completed', () => {
    const operation = feed.get('operations', removal.id)
    return (operation as { status?: string } | undefined)?.status === 'completed'
  })
  const { operation } = (await api('DELETE', `/boxes/${plum}`)).json
  await withState(feed, plum, 'terminated')
  await waitUntil('the operation is completed', async () => {
    const current = (await api('GET', `/operations/${operation.id}`)).json.operation
    return (
      current.status === 'completed' &&
      JSON.stringify(feed.get('operations', operation.id)) === JSON.stringify(current)
    )
  })
  await waitForLists(feed)

  const again = await connect(t)
  t.same(again.list('boxes'), feed.list('boxes'))
  t.same(again.list('operations'), [], 'has no operations that have finished')
  const live = await connect(t, bearer(key), '?live=1')
  await waitForLists(live, bearer(key), '?live=1')
  t.ok(live.get('boxes', fig))
  t.notOk(live.get('boxes', plum))
})

t.test('has operations in progress, and removes deleted boxes from a feed of live boxes', async (t) => {
  const gate = Promise.withResolvers<void>()
  infra.before.destroy = () => gate.promise
  const box = await createRunningBox(coordinator)
  const { operation } = (await api('DELETE', `/boxes/${box}`)).json
  const feed = await connect(t, bearer(key), '?live=1')
  t.match(feed.get('operations', operation.id), { kind: 'box_delete', targetId: box })
  t.match(feed.get('boxes', box), { desiredState: 'terminated' })
  delete infra.before.destroy
  gate.resolve()
  await waitUntil('the box is removed', () => feed.get('boxes', box) === undefined)
})

t.test('sends a box when only its job has changed, and the changes of a transaction together', async (t) => {
  const [a, b] = [await createRunningBox(coordinator), await createRunningBox(coordinator)]
  const feed = await connect(t)
  // A box is running before its job has ended, and the end of the job is a change too. Changes arrive in their order.
  for (const id of [a, b])
    await waitUntil('the job has ended', async () => (await api('GET', `/boxes/${id}`)).json.job === null)
  await transaction(db, (trx) => updateBox(trx, a, { hostname: 'settled' }))
  await waitUntil('all changes have arrived', () => (feed.get('boxes', a) as Box).hostname === 'settled')
  const before = feed.messages.length
  await transaction(db, async (trx) => {
    for (let i = 0; i < 50; i++) for (const id of [a, b]) await updateBox(trx, id, { pauses_survived: i })
  })
  await waitUntil('the change has arrived', () => feed.messages.length > before)
  t.match(feed.messages.slice(before), [{ type: 'changed', kind: 'boxes', removed: [] }])
  const message = feed.messages[before]
  if (message?.type !== 'changed') return t.fail('another message')
  t.same(idsOf([...message.items].sort(byId)), [a, b].sort())

  await t.rejects(
    transaction(db, async (trx) => {
      await updateBox(trx, a, { hostname: 'rolled-back' })
      throw new Error('roll back')
    }),
  )
  await transaction(db, (trx) => updateBox(trx, b, { hostname: 'committed' }))
  await waitUntil('the commit has arrived', () => (feed.get('boxes', b) as Box).hostname === 'committed')
  t.notOk(JSON.stringify(feed.messages).includes('rolled-back'))
})

t.test('has what the credential may see', async (t) => {
  const contractor = await credentials.addUser(workspaceId, 'contractor')
  const contractorKey = (await credentials.addKey(contractor)).key
  const foreign = await credentials.addUser(await credentials.addWorkspace('other'), 'owner')
  const foreignKey = (await credentials.addKey(foreign)).key
  const shown = await createRunningBox(coordinator)
  const limitedKey = (await credentials.addKey(owner, { boxIds: [shown] })).key
  const feeds = {
    owner: await connect(t),
    contractor: await connect(t, bearer(contractorKey)),
    limited: await connect(t, bearer(limitedKey)),
    foreign: await connect(t, bearer(foreignKey)),
  }
  const create = async (secret: string) => {
    const box = (await api('POST', '/boxes', {}, { key: secret })).json.box.id
    await waitForState(box, 'running')
    return box
  }
  const [hidden, ofContractor] = [await create(key), await create(contractorKey)]
  const ofForeign = (await api('POST', '/boxes', {}, { key: foreignKey })).json.box.id
  await withState(feeds.foreign, ofForeign, 'running')
  for (const box of [shown, hidden, ofContractor]) {
    await takeSnapshot(coordinator, box)
    await api('DELETE', `/boxes/${box}`)
    await withState(feeds.owner, box, 'terminated')
  }
  await waitForLists(feeds.contractor, bearer(contractorKey))
  await waitForLists(feeds.limited, bearer(limitedKey))
  await waitForLists(feeds.foreign, bearer(foreignKey))
  await waitUntil('both operations have arrived', () =>
    [feeds.contractor, feeds.limited].every((feed) =>
      feed.list('operations').some((operation) => JSON.stringify(operation).includes('completed')),
    ),
  )
  for (const [feed, own, others] of [
    [feeds.contractor, ofContractor, [shown, hidden, ofForeign]],
    [feeds.limited, shown, [hidden, ofContractor, ofForeign]],
    [feeds.foreign, ofForeign, [shown, hidden, ofContractor]],
  ] as const) {
    const text = JSON.stringify(feed.messages)
    t.ok(text.includes(own))
    for (const box of others) t.notOk(text.includes(box))
  }
  t.notOk(JSON.stringify(feeds.owner.messages).includes(ofForeign))
})

t.test('ends when the access is revoked, and when the credential may see other boxes', async (t) => {
  const revoked = (await api('POST', '/keys', { name: 'revoked' }, session)).json
  const feed = await connect(t, bearer(revoked.secret))
  await api('DELETE', `/keys/${revoked.key.id}`, undefined, session)
  t.same(await feed.closed, { code: CLOSE_CODES.unauthorized, reason: 'unauthorized' })

  const limited = (await api('POST', '/keys', { name: 'limited' }, session)).json
  const [all, lowered] = [await connect(t, bearer(limited.secret)), await connect(t, bearer(limited.secret))]
  const box = await createRunningBox(coordinator)
  await api('PATCH', `/keys/${limited.key.id}`, { boxIds: [box] }, session)
  t.match(await all.closed, { code: CLOSE_CODES.stopping, reason: 'access changed' })
  t.match(await lowered.closed, { code: CLOSE_CODES.stopping })
  const some = await connect(t, bearer(limited.secret))
  t.same(idsOf(some.list('boxes')), [box])
  await api('PATCH', `/keys/${limited.key.id}`, { access: { workspace: 'read' } }, session)
  t.match(await some.closed, { code: CLOSE_CODES.forbidden, reason: 'key_access_denied' })

  const member = await credentials.addUser(workspaceId, 'member')
  const memberSession = await credentials.addSession(member)
  const ofMember = await connect(t, { cookie: memberSession.cookie })
  await api('PATCH', `/members/${member.id}`, { role: 'contractor' }, session)
  t.match(await ofMember.closed, { code: CLOSE_CODES.stopping, reason: 'access changed' })
  const ofContractor = await connect(t, { cookie: memberSession.cookie })
  t.same(ofContractor.list('boxes'), [])
  await api('DELETE', `/members/${member.id}`, undefined, session)
  t.match(await ofContractor.closed, { code: CLOSE_CODES.unauthorized })
})

t.test(
  'refuses a page of another origin that has the cookie, and other requests than a handshake',
  async (t) => {
    t.match(await refuse({ ...cookie, origin: 'https://other.example' }), {
      status: 403,
      text: /not_allowed/,
    })
    t.match(await refuse({ ...cookie, origin: url, 'sec-fetch-site': 'same-site' }), { status: 403 })
    t.match(await refuse({}), { status: 401 })
    await connect(t, { ...cookie, origin: url, 'sec-fetch-site': 'same-origin' })
    t.match(await api('GET', '/feed'), { status: 400, json: { error: 'invalid_request' } })
    t.match(await api('GET', '/feed?live=maybe'), { status: 400 })
  },
)

t.test('ends when the client sends a message', async (t) => {
  for (const message of ['{"type":"subscribe"}', Buffer.from('bytes')]) {
    const feed = await connect(t)
    feed.ws.send(message)
    t.match(await feed.closed, { code: CLOSE_CODES.invalid })
  }
})

t.test('limits the feeds of a credential', { skip: skipOnReplicas() }, async (t) => {
  const { key: limitedKey } = await credentials.addKey(owner)
  const open = Array.from({ length: LIMITS.feeds.perCredential }, () =>
    connectFeed(t, url, bearer(limitedKey)),
  )
  const feeds = await Promise.all(open)
  t.match(await refuse(bearer(limitedKey)), { status: 429, text: /rate_limited/ })
  t.match(await api('GET', '/boxes', undefined, { key: limitedKey }), { status: 200 })
  for (const feed of feeds) feed.ws.terminate()
  await waitUntil('the feeds have ended', () =>
    connectFeed(t, url, bearer(limitedKey)).then(
      () => true,
      () => false,
    ),
  )
})

t.test('ends when the coordinator stops, and begins again with what has changed meanwhile', async (t) => {
  const infra = new FakeInfrastructure()
  const first = await startTestCoordinator(t, { infra })
  const box = await createRunningBox(first, { name: 'fig' })
  const feed = await connectFeed(t, first.url, bearer(first.key))
  await feed.ready()
  t.match(feed.get('boxes', box), { hostname: 'fig' })
  await first.drain(DEADLINE_MS)
  t.match(await feed.closed, { code: CLOSE_CODES.stopping, reason: 'the coordinator is stopping' })
  await first.close()
  const second = await startTestCoordinator(t, { infra, dataDir: first.dataDir })
  await second.api('PATCH', `/boxes/${box}`, { name: 'plum' })
  const again = await connectFeed(t, second.url, bearer(first.key))
  await again.ready()
  t.match(again.get('boxes', box), { hostname: 'plum' })
})
