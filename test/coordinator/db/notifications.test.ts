// Notifications between coordinators that share a Postgres database, and in the process of one that does not.
import { connect as connectSocket, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Origin } from '../../../coordinator/db/notification-hub.ts'
import { defineTopic, getReceivedUntil, notify, subscribe } from '../../../coordinator/db/notifications.ts'
import { type Db, openDatabase } from '../../../coordinator/db/open.ts'
import { beforeCommit, transaction } from '../../../coordinator/db/transaction.ts'
import { createPostgresConfig } from '../../support/db.ts'
import {
  connectClient,
  openPair,
  openShared,
  recordNotifications,
  startSharedPostgres,
  terminateListeners,
} from '../../support/shared-databases.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { waitUntil } from '../../support/wait-until.ts'

const { skip, serverUrl, newDatabase } = await startSharedPostgres(t)

const CHANGES = defineTopic<{ id: string }>('test changes')
const OTHERS = defineTopic<{ id: string }>('test others')
const LOCAL = defineTopic<{ id: string }>('test local', { mayBeLocal: true })

/** Records the notifications of both topics. */
function record(db: Db) {
  const received: [topic: string, id: string, origin: Origin][] = []
  let gaps = 0
  for (const topic of [CHANGES, OTHERS, LOCAL])
    subscribe(db, topic, ({ id }, origin) => received.push([topic.name, id, origin]), {
      onGap() {
        gaps += 1
      },
    })
  return {
    received,
    get ids() {
      return received.map(([, id]) => id)
    },
    get gaps() {
      return gaps
    },
  }
}

const send = (db: Db, ...ids: string[]) =>
  transaction(db, async (trx) => {
    for (const id of ids) notify(trx, CHANGES, { id })
  })

const workspace = (id: string) => ({ id, name: id, zero_data_retention: 0 as const, created_at: 2 ** 41 })

t.test('a database of one coordinator notifies its own subscribers, after the commit', async (t) => {
  const db = await sqliteForTest(t)
  const recorded = record(db)
  await transaction(db, async (trx) => {
    notify(trx, CHANGES, { id: 'a' })
    await transaction(trx, async (inner) => notify(inner, OTHERS, { id: 'b' }))
    t.same(recorded.received, [])
  })
  t.same(recorded.received, [
    ['test changes', 'a', 'here'],
    ['test others', 'b', 'here'],
  ])
  await t.rejects(
    transaction(db, async (trx) => {
      notify(trx, CHANGES, { id: 'c' })
      throw new Error('simulated failure')
    }),
  )
  t.same(recorded.ids, ['a', 'b'])
  t.equal(getReceivedUntil(db), Number.POSITIVE_INFINITY)
})

t.test('the end of a subscription', async (t) => {
  const db = await sqliteForTest(t)
  const ids: string[] = []
  const unsubscribe = subscribe(db, CHANGES, ({ id }) => ids.push(id), { onGap: () => undefined })
  await send(db, 'a')
  unsubscribe()
  await send(db, 'b')
  t.same(ids, ['a'])
})

t.test('a database of one coordinator on Postgres sends no NOTIFY', { skip }, async (t) => {
  const url = await newDatabase()
  const queries: string[] = []
  const db = await openDatabase({
    ...createPostgresConfig(url),
    observer: {
      onQuery: (operation) => queries.push(operation),
      onAcquire: () => undefined,
      onTransaction: () => undefined,
    },
  })
  t.teardown(() => db.destroy())
  const texts = await recordNotifications(t, url)
  const recorded = record(db)
  await send(db, 'a')
  t.same(recorded.received, [['test changes', 'a', 'here']])
  t.same(queries, [], 'no query more')
  await transaction(db, (trx) => trx.insertInto('workspaces').values(workspace('a')).execute())
  t.same(texts, [])
})

t.test('both coordinators get each notification once, in order, after the commit', { skip }, async (t) => {
  const [first, second] = await openPair(t, await newDatabase())
  const [here, there] = [record(first), record(second)]
  await transaction(first, async (trx) => {
    notify(trx, CHANGES, { id: 'a' })
    notify(trx, OTHERS, { id: 'b' })
    notify(trx, CHANGES, { id: 'a' })
    await trx.insertInto('workspaces').values(workspace('a')).execute()
    t.same(here.received, [])
  })
  t.same(here.ids, ['a', 'b', 'a'], 'called before transaction() resolves')
  await send(first, 'c')
  await waitUntil('the other one has received the last one', () => there.ids.includes('c'))
  t.same(there.received, [
    ['test others', 'b', 'elsewhere'],
    ['test changes', 'a', 'elsewhere'],
    ['test changes', 'c', 'elsewhere'],
  ])
  t.same(here.ids, ['a', 'b', 'a', 'c'], 'its own ones have not arrived again')
  await send(second, 'd')
  await waitUntil('the first one has received it', () => here.ids.includes('d'))
  t.same(here.received.at(-1), ['test changes', 'd', 'elsewhere'])
  t.equal(here.gaps + there.gaps, 0)
})

t.test('a notification arrives after its transaction can be read', { skip }, async (t) => {
  const [first, second] = await openPair(t, await newDatabase())
  const counts: Promise<number>[] = []
  const count = async () => (await second.selectFrom('workspaces').select('id').execute()).length
  subscribe(second, CHANGES, () => counts.push(count()), { onGap: () => undefined })
  for (const id of ['a', 'b', 'c'])
    await transaction(first, async (trx) => {
      notify(trx, CHANGES, { id })
      await trx.insertInto('workspaces').values(workspace(id)).execute()
    })
  await waitUntil('all have arrived', () => counts.length === 3)
  t.ok((await Promise.all(counts)).every((found, index) => found > index))
})

t.test('a transaction that is rolled back notifies of nothing', { skip }, async (t) => {
  const [first, second] = await openPair(t, await newDatabase())
  const [here, there] = [record(first), record(second)]
  await t.rejects(
    transaction(first, async (trx) => {
      notify(trx, CHANGES, { id: 'a' })
      beforeCommit(trx, async () => {
        throw new Error('simulated failure')
      })
    }),
    { message: 'simulated failure' },
  )
  await send(first, 'b')
  await waitUntil('the next one has arrived', () => there.ids.includes('b'))
  t.same(there.ids, ['b'])
  t.same(here.ids, ['b'])
})

t.test('a transaction sends one NOTIFY, also with what its last callbacks add', { skip }, async (t) => {
  const url = await newDatabase()
  const [first, second] = await openPair(t, url)
  const texts = await recordNotifications(t, url)
  const there = record(second)
  await transaction(first, async (trx) => {
    beforeCommit(trx, async () => {
      notify(trx, CHANGES, { id: 'b' })
      beforeCommit(trx, async () => notify(trx, CHANGES, { id: 'c' }))
    })
    notify(trx, CHANGES, { id: 'a' })
  })
  await send(first, 'd')
  await waitUntil('all have arrived', () => there.ids.includes('d') && texts.length > 1)
  t.same(there.ids, ['a', 'b', 'c', 'd'])
  t.equal(texts.length, 2)
})

t.test('a transaction with too many notifications lets the others read again', { skip }, async (t) => {
  const url = await newDatabase()
  const [first, second] = await openPair(t, url)
  const texts = await recordNotifications(t, url)
  const [here, there] = [record(first), record(second)]
  let otherGaps = 0
  const NEVER_SENT = defineTopic<{ id: string }>('test never sent')
  subscribe(second, NEVER_SENT, () => undefined, {
    onGap() {
      otherGaps += 1
    },
  })
  const ids = Array.from({ length: 500 }, (_, index) => `box_${index}_${'x'.repeat(20)}`)
  await send(first, ...ids)
  t.same(here.ids, ids)
  await waitUntil('the other one reads again', () => there.gaps > 0)
  t.same(there.ids, [])
  t.equal(there.gaps, 1, 'only the subscribers of the topic')
  t.equal(otherGaps, 0)
  t.ok(texts.every((text) => text.length < 8000))
  await send(first, 'next')
  await waitUntil('the next one has arrived', () => there.ids.includes('next'))
})

t.test('transactions of reports notify their own coordinator only', { skip }, async (t) => {
  const url = await newDatabase()
  const [first, second] = await openPair(t, url)
  const texts = await recordNotifications(t, url)
  const [here, there] = [record(first), record(second)]
  const options = { notifiesLocally: true }
  await transaction(first, async (trx) => notify(trx, LOCAL, { id: 'a' }), options)
  t.same(here.ids, ['a'])
  await t.rejects(
    transaction(
      first,
      (trx) => transaction(trx, async (inner) => notify(inner, CHANGES, { id: 'b' })),
      options,
    ),
    { message: 'a transaction that notifies locally must not notify of test changes' },
  )
  await send(first, 'c')
  await waitUntil('the next one has arrived', () => there.ids.includes('c') && texts.length > 0)
  t.same(there.ids, ['c'])
  t.equal(texts.length, 1)
})

t.test('a subscriber that throws does not keep the others from their notification', { skip }, async (t) => {
  const errors: unknown[] = []
  const url = await newDatabase()
  const first = await openShared(t, url)
  const second = await openShared(t, url, {
    log: { warn: () => undefined, error: (fields: unknown) => errors.push(fields) } as never,
  })
  subscribe(
    second,
    CHANGES,
    () => {
      throw new Error('simulated failure')
    },
    { onGap: () => undefined },
  )
  const there = record(second)
  await send(first, 'a')
  await waitUntil('the other subscriber has received it', () => there.ids.includes('a'))
  t.match(errors, [{ err: { message: 'simulated failure' } }])
})

t.test('a notification of another program lets the subscribers read again', { skip }, async (t) => {
  const url = await newDatabase()
  const db = await openShared(t, url)
  const recorded = record(db)
  const client = await connectClient(t, url)
  await client.query("select pg_notify('boxwood', 'not JSON')")
  await waitUntil('each subscriber reads again', () => recorded.gaps === 3)
})

t.test('a coordinator whose connection for notifications is lost reads again', { skip }, async (t) => {
  const url = await newDatabase()
  const [first, second] = await openPair(t, url)
  const there = record(second)
  const before = getReceivedUntil(second)
  t.equal(await terminateListeners(await connectClient(t, url)), 2)
  t.equal((await second.selectFrom('workspaces').select('id').execute()).length, 0, 'queries do not wait')
  await send(first, 'a')
  await waitUntil('the subscribers read again', () => there.gaps === 3)
  t.ok(getReceivedUntil(second) > before)
  await send(first, 'b')
  await waitUntil('notifications arrive again', () => there.ids.includes('b'))
  t.equal(there.gaps, 3, 'once')
})

t.test('a half-open connection for notifications is replaced', { skip }, async (t) => {
  const url = await newDatabase()
  const proxy = await startProxy(t)
  const proxied = new URL(url)
  proxied.hostname = '127.0.0.1'
  proxied.port = String(proxy.port)
  const first = await openShared(t, url)
  const second = await openShared(t, proxied.href, { shared: { probeMs: 200 } })
  const there = record(second)
  const opened = getReceivedUntil(second)
  await waitUntil('a probe is answered', () => getReceivedUntil(second) > opened)
  proxy.drop()
  await send(first, 'a')
  await waitUntil('the subscribers read again', () => there.gaps === 3)
  await send(first, 'b')
  await waitUntil('notifications arrive again', () => there.ids.includes('b'))
})

/** A proxy in front of Postgres. `drop()` forwards nothing more on the open connections, and keeps them open. */
async function startProxy(t: Test): Promise<{ port: number; drop(): void }> {
  const socketPath = join(decodeURIComponent(new URL(serverUrl).hostname), '.s.PGSQL.5432')
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connectSocket(socketPath)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => undefined)
      from.on('close', () => to.destroy())
      from.pipe(to)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    drop() {
      for (const socket of sockets) socket.unpipe().pause()
    },
  }
}
