// The feeds of a coordinator: limits, stored rows that are deleted, and a database that fails.
import t, { type Test } from 'tap'
import { pruneBoxes } from '../../../coordinator/boxes/prune.ts'
import { Feeds, type FeedsOptions } from '../../../coordinator/feed/feeds.ts'
import { CLOSE_CODES } from '../../../shared/close-codes.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { connectFeed } from '../../support/feed-client.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { openWebSocketPair } from '../../support/websocket-pair.ts'

const coordinator = await startTestCoordinator(t)
const { api, url, key, instance } = coordinator
const { db, clock, boxes, modules } = instance.context
const workspaceId = instance.owner?.workspaceId ?? ''

t.test('removes a box whose record is deleted after its retention', async (t) => {
  const box = (await api('POST', '/boxes', {})).json.box.id
  await coordinator.waitForState(box, 'running')
  await api('DELETE', `/boxes/${box}`)
  const feed = await connectFeed(t, url, { authorization: `Bearer ${key}` })
  await waitUntil('the box is deleted', () => {
    const item = feed.get('boxes', box) as { observedState: string } | undefined
    return item?.observedState === 'terminated'
  })
  const options = { db, clock: { now: () => Date.now() + 1000 }, retentionDays: 0 }
  await pruneBoxes({ ...options, deleteOfBox: modules.deleteOfBox }, new AbortController().signal)
  await waitUntil('the box is removed', () => feed.get('boxes', box) === undefined)
})

type Owner = { userId?: string | null; workspaceId?: string }
const actorOf = (id: string, { userId = null, workspaceId: ofWorkspace = workspaceId }: Owner = {}) => ({
  credential: { type: 'key' as const, id, kind: 'api' as const, expiresAt: null, isUnverified: false },
  ...{ boxIds: null, access: null, workspaceId: ofWorkspace, userId, role: 'owner' as const },
})

/** Opens a feed without HTTP. */
async function open(t: Test, feeds: Feeds, credentialId = 'key_1', owner: Owner = {}) {
  const [client, server] = await openWebSocketPair(t)
  const messages: { type: string }[] = []
  const ready = Promise.withResolvers<void>()
  client.on('message', (data) => {
    const message = JSON.parse(String(data))
    messages.push(message)
    if (message.type === 'ready') ready.resolve()
  })
  const closed = new Promise<number>((resolve) => client.once('close', resolve))
  client.resume()
  const signal = new AbortController().signal
  const actor = actorOf(credentialId, owner)
  const openRequest = { signal, addCheck: async () => undefined, confirm: async () => actor }
  const served = feeds.serve({
    actor,
    live: false,
    openRequest,
    accept: async () => server,
  })
  await Promise.race([served, ready.promise])
  return { client, messages, closed, served }
}

const createFeeds = (t: Test, options: Partial<FeedsOptions> = {}) => {
  const feeds = new Feeds({ db, clock, boxes, log: { error: () => undefined }, ...options })
  t.teardown(() => feeds.close())
  return feeds
}

t.test('limits the feeds of a credential and of all, until they end', async (t) => {
  const feeds = createFeeds(t, { limits: { perCredential: 2, perUser: 9, perWorkspace: 9, total: 3 } })
  const first = await open(t, feeds)
  await open(t, feeds)
  await t.rejects(open(t, feeds), { code: 'rate_limited', headers: { 'retry-after': '5' } })
  await open(t, feeds, 'key_2')
  await t.rejects(open(t, feeds, 'key_2'), { code: 'rate_limited' })
  first.client.close()
  await first.served
  t.equal(feeds.count, 2)
  const last = await open(t, feeds)
  feeds.close()
  t.equal(await last.closed, CLOSE_CODES.stopping)
  await t.rejects(open(t, feeds), { code: 'control_plane_unavailable' })
})

t.test(
  'keys of one member take neither the feeds of other members nor those of other workspaces',
  async (t) => {
    const limits = { perCredential: 2, perUser: 4, perWorkspace: 6, total: 8 }
    const feeds = createFeeds(t, { limits })
    const eve = { userId: 'usr_eve' }
    const eves = []
    for (const name of ['key_1', 'key_1', 'key_2', 'key_2']) eves.push(await open(t, feeds, name, eve))
    eves.push(await open(t, feeds, 'key_3', eve))
    t.equal(await eves[0]?.closed, CLOSE_CODES.overloaded, 'the oldest of the key with the most is closed')
    await t.rejects(open(t, feeds, 'key_3', eve), {
      code: 'rate_limited',
      message: /^Your user has reached the limit of 4 open feeds\. Close/,
    })
    await open(t, feeds, 'key_4', { userId: 'usr_owner' })
    for (const name of ['key_5', 'key_6', 'key_7'])
      await open(t, feeds, name, { workspaceId: 'ws_other', userId: name })
    t.equal(feeds.count, 8)
    await open(t, feeds, 'key_8', { workspaceId: 'ws_third', userId: 'usr_third' })
    t.equal(await eves[2]?.closed, CLOSE_CODES.overloaded, 'of the workspace and the member with the most')
    t.equal(feeds.count, 8)
  },
)

t.test('closes a feed that would lack an item or a change', async (t) => {
  const broken = createFeeds(t, {
    boxes: {
      // biome-ignore lint/correctness/useYield: the first page fails.
      async *listPages() {
        throw new Error('the database is lost')
      },
    },
  })
  t.equal(await (await open(t, broken)).closed, CLOSE_CODES.failed)

  let isLost = false
  const lost = new Proxy(db, {
    get(target, name) {
      if (name === 'selectFrom' && isLost) throw new Error('the database is lost')
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const feed = await open(t, createFeeds(t, { db: lost }))
  isLost = true
  await api('POST', '/boxes', {})
  t.equal(await feed.closed, CLOSE_CODES.failed)
})
