// The audit log is delivered to an HTTPS endpoint: signed, in order and at least once, whatever the endpoint does.
import { createHmac } from 'node:crypto'
import t, { type Test } from 'tap'
import type { Post } from '../../../../coordinator/audit/export/post.ts'
import type { AuditDelivery } from '../../../../shared/api/audit-sink.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { type Collector, type Received, startCollector } from '../../../support/https-collector.ts'
import { requires } from '../../../support/requires.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { setUp } from './support.ts'

const parse = ({ body }: Received): AuditDelivery => JSON.parse(body)
const listIds = (received: readonly Received[]) =>
  received.map((request) => parse(request).events.map(({ id }) => id))

/** Written without the code under test, from the text of the specification. */
function verify({ headers, body }: Received, secret: string): boolean {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const content = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  return headers['webhook-signature'] === `v1,${createHmac('sha256', key).update(content).digest('base64')}`
}

async function runTests(t: Test, collector: Collector): Promise<void> {
  const { received, url } = collector
  t.beforeEach(() => collector.reset())

  await onEachDatabase(t, async (t, newDb) => {
    t.test('events arrive signed and in order, without a request of the owner', async (t) => {
      const { service, owner, clock, record, waitForSink, workspaceId, readSink } = await setUp(
        t,
        await newDb(t),
        collector,
      )
      await record('before')
      const { sink, secret } = await service.put(owner, { url })
      t.match(sink, { url, attempt: 0, lastError: null })
      if (secret === null) throw new Error('there is no secret')
      t.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
      await collector.waitForRequests(1)
      await waitForSink('the first event is delivered', ({ pending }) => pending === 0)
      await record('a', 'b')
      await waitForSink('all events are delivered', ({ deliveredThrough }) => deliveredThrough === 4)
      t.same(listIds(received), [[2], [3, 4]], 'the first event is the configuration')
      for (const request of received) {
        t.ok(verify(request, secret))
        t.equal(request.path, '/events')
        t.equal(request.headers['webhook-timestamp'], String(clock.now() / 1000))
      }
      t.match(parse(received[1] as Received), {
        workspaceId,
        skippedThrough: null,
        events: [{ kind: 'box.create', detail: { name: 'a' }, actorUserId: owner.userId }, {}],
      })
      t.match(await readSink(), { lastDeliveredAt: new Date(clock.now()).toISOString(), pending: 0 })
      t.match(await service.put(owner, { url }), { secret: null }, 'the secret is shown once')
      await waitForSink('all events are delivered', ({ pending }) => pending === 0)
      const changed = await service.put(owner, { url: `${url}/2` })
      t.match(changed.secret, /^whsec_/, 'another URL gets another secret')
      t.not(changed.secret, secret)
      await waitForSink('all events are delivered', ({ pending }) => pending === 0)
      t.same(listIds(received).flat(), [2, 3, 4, 5, 6], 'a new URL continues after the last delivered event')
      await service.remove(owner)
      await service.remove(owner)
      t.equal(await service.get(owner), null)
      await record('c')
      t.equal(listIds(received).flat().length, 5)
    })

    t.test('a failed delivery is repeated later, with what has happened since', async (t) => {
      const { service, owner, clock, timers, timeouts, record, waitForSink } = await setUp(
        t,
        await newDb(t),
        collector,
      )
      collector.respondWith((response) => response.writeHead(500).end('x'.repeat(100_000)))
      await service.put(owner, { url })
      await waitForSink('the first attempt has failed', ({ attempt }) => attempt === 1)
      t.match(await service.get(owner), { lastError: 'The endpoint responded with status 500.', pending: 1 })
      await waitUntil('the next attempt is scheduled', () => timers.list().length === 1)
      t.same(timers.list(), [5_000])
      await record('a')
      collector.respondWith(() => undefined)
      clock.advance(5_000)
      timers.fire()
      await collector.waitForRequests(2)
      timeouts.fire()
      await waitForSink('the second attempt has failed', ({ attempt }) => attempt === 2)
      t.match(await service.get(owner), {
        lastError: 'The endpoint did not respond within 15 seconds.',
        nextAttemptAt: new Date(clock.now() + 10_000).toISOString(),
      })
      collector.respondWith((response) => response.writeHead(302, { location: '/elsewhere' }).end())
      await waitUntil('the next attempt is scheduled', () => timers.list().length === 1)
      clock.advance(10_000)
      timers.fire()
      await waitForSink('the third attempt has failed', ({ attempt }) => attempt === 3)
      t.match(await service.get(owner), { lastError: /^The endpoint responded with status 302\. Redirects/ })
      t.notOk(received.some(({ path }) => path === '/elsewhere'))
      collector.respondWith((response) => response.writeHead(200).end())
      await waitUntil('the next attempt is scheduled', () => timers.list().length === 1)
      clock.advance(20_000)
      timers.fire()
      await waitForSink('all events are delivered', ({ pending }) => pending === 0)
      t.match(await service.get(owner), { attempt: 0, lastError: null, nextAttemptAt: null })
      t.same(listIds(received), [[1], [1, 2], [1, 2], [1, 2]])
    })

    t.test('PUT sends failed deliveries at once; a restart keeps the time of the next attempt', async (t) => {
      const { service, owner, timers, restart, waitForSink } = await setUp(t, await newDb(t), collector)
      collector.respondWith((response) => response.writeHead(503).end())
      await service.put(owner, { url })
      await waitForSink('the first attempt has failed', ({ attempt }) => attempt === 1)
      await waitUntil('the next attempt is scheduled', () => timers.list().length === 1)
      await restart()
      await waitUntil('the next attempt is scheduled', () => timers.list().length === 1)
      t.equal(received.length, 1)
      collector.respondWith((response) => response.writeHead(204).end())
      await service.put(owner, { url })
      await waitForSink('all events are delivered', ({ pending }) => pending === 0)
      t.same(timers.list(), [])
    })

    t.test('a kill after the response and before its record repeats the delivery', async (t) => {
      const { service, owner, post, restart, record, waitForSink } = await setUp(t, await newDb(t), collector)
      let isDelivered = false
      const postAndDie: Post = async (request, signal) => {
        await post(request, signal)
        isDelivered = true
        // Like a kill: the response is not recorded.
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return { delivered: false, error: 'killed' }
      }
      await restart(postAndDie)
      await service.put(owner, { url })
      await waitUntil('the delivery is complete', () => isDelivered)
      await restart()
      await waitForSink('all events are delivered', ({ pending }) => pending === 0)
      await record('a')
      await waitForSink('all events are delivered', ({ deliveredThrough }) => deliveredThrough === 2)
      t.same(listIds(received), [[1], [1], [2]])
      t.equal(received[0]?.headers['webhook-id'], received[1]?.headers['webhook-id'])
    })

    t.test(
      'a long backlog arrives in batches, and names the events that the retention deleted',
      async (t) => {
        const { service, owner, insertEvents, deleteEventsThrough, waitForSink } = await setUp(
          t,
          await newDb(t),
          collector,
        )
        await insertEvents(600)
        let isFirst = true
        collector.respondWith(async (response) => {
          if (isFirst) await deleteEventsThrough(550)
          isFirst = false
          response.writeHead(204).end()
        })
        await service.put(owner, { url, from: 'start' })
        await waitForSink('all events are delivered', ({ pending }) => pending === 0)
        const batches = received.map(parse)
        t.same(
          batches.map(({ events, skippedThrough }) => [events[0]?.id, events.at(-1)?.id, skippedThrough]),
          [
            [1, 500, null],
            [551, 601, 550],
          ],
        )
        t.equal(batches[0]?.events.length, 500)
        for (const body of received) t.ok(Buffer.byteLength(body.body) < 1024 * 1024)
        await service.put(owner, { url, from: 'start' })
        await waitForSink('all events are delivered', ({ pending }) => pending === 0)
        t.match(parse(received[2] as Received), { skippedThrough: null, events: [{ id: 551 }] })
      },
    )
  })

  await t.test('a host with a private address gets no connection', async (t) => {
    const { service, owner, waitForSink } = await setUp(t, await sqliteForTest(t), collector, {
      allowsPrivate: false,
    })
    await service.put(owner, { url: collector.url })
    await waitForSink('the delivery has failed', ({ attempt }) => attempt === 1)
    t.match(await service.get(owner), {
      lastError: /^The host collector\.test has an address that is not public/,
    })
    await t.rejects(service.put(owner, { url: `https://127.0.0.1:${collector.port}` }), {
      code: 'bad_request',
    })
    t.equal(collector.countConnections(), 0)
  })

  await t.test('a delivery fails when the endpoint upgrades the connection', async (t) => {
    const { service, owner, waitForSink } = await setUp(t, await sqliteForTest(t), collector)
    collector.respondWith(({ socket }) =>
      socket?.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    )
    await service.put(owner, { url: collector.url })
    await waitForSink('the delivery has failed', ({ attempt }) => attempt === 1)
    t.match(await service.get(owner), { lastError: 'The endpoint responded with status 101.' })
  })

  await t.test('an endpoint with a certificate of another authority or name gets no events', async (t) => {
    const { service, owner, waitForSink } = await setUp(t, await sqliteForTest(t), collector)
    await service.put(owner, { url: collector.url.replace('collector.test', 'other.test') })
    await waitForSink('the delivery has failed', ({ attempt }) => attempt === 1)
    t.match(await service.get(owner), { lastError: /certificate/ })
    t.equal(collector.received.length, 0)
  })
}

t.test('deliveries', { skip: requires('openssl') }, async (t) => {
  await runTests(t, await startCollector(t))
})
