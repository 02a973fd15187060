// The feeds of a coordinator: limits, stored rows that are deleted, and a database that fails.
import t, { type Test } from 'tap'
import { Feeds, type FeedsOptions } from '../../../../coordinator/boxes/feed/feeds.ts'
import { pruneBoxes } from '../../../../coordinator/boxes/prune.ts'
import { CLOSE_CODES } from '../../../../shared/close-codes.ts'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { connectFeed } from '../../../support/feed-client.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { openWebSocketPair } from '../../../support/websocket-pair.ts'

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

const actorOf = (id: string) => ({
  credential: { type: 'key' as const, id, kind: 'api' as const, expiresAt: null, isUnverified: false },
  ...{ boxIds: null, access: null, workspaceId, userId: null, role: 'owner' as const },
})

/** Opens a feed without HTTP. */
async function open(t: Test, feeds: Feeds, credentialId = 'key_1') {
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
  const openRequest = { signal, addCheck: async () => undefined, confirm: async () => actorOf(credentialId) }
  const served = feeds.serve({
    actor: actorOf(credentialId),
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
  const feeds = createFeeds(t, { limits: { perCredential: 2, total: 3 } })
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
