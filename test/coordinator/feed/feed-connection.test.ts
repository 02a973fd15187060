// One client of the feed: the order of its messages, slow and silent clients, and the sizes of messages.
import t, { type Test } from 'tap'
import type { WebSocket } from 'ws'
import { FeedConnection } from '../../../coordinator/feed/feed-connection.ts'
import { createChangedMessages, createItemsMessages } from '../../../coordinator/feed/messages.ts'
import { CLOSE_CODES } from '../../../shared/close-codes.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { openWebSocketPair } from '../../support/websocket-pair.ts'

const VIEW = { visibility: { workspaceId: 'w', boxIds: null, ownerUserId: null }, live: false }
const clock = { now: () => 0 }
const AT = '1970-01-01T00:00:00.000Z'
const MIB = Buffer.alloc(1024 * 1024, ' ')

/** The client is paused. `closes`: the codes with which the connection was closed. */
async function connect(t: Test, { aliveMs }: { aliveMs?: number } = {}) {
  const [client, server] = await openWebSocketPair(t)
  const received: string[] = []
  client.on('message', (data) => received.push(String(data)))
  const closes: number[] = []
  const close = server.close.bind(server)
  server.close = (code = 0, reason) => {
    closes.push(code)
    close(code, reason)
  }
  return {
    client,
    server,
    received,
    closes,
    connection: new FeedConnection(server, VIEW, { clock, aliveMs }),
  }
}

async function* generate(
  messages: readonly string[],
  onPull: (server?: WebSocket) => void = () => undefined,
) {
  for (const message of messages) {
    onPull()
    yield message
  }
}

t.test('sends the changes that occur meanwhile after the first items', async (t) => {
  const { client, received, connection } = await connect(t)
  client.resume()
  const pulls = ['first', 'second']
  await connection.sendItems(generate(pulls, () => connection.sendChanges([Buffer.from('change')])))
  connection.sendChanges([Buffer.from('later')])
  await waitUntil('all messages have arrived', () => received.includes('later'))
  t.same(received, ['first', 'second', 'change', 'change', `{"type":"ready","at":"${AT}"}`, 'later'])
})

t.test('reads the next items when the client has read those before', async (t) => {
  const { client, server, received, connection } = await connect(t)
  const buffered: number[] = []
  const texts = Array.from({ length: 40 }, () => MIB.toString())
  const sent = connection.sendItems(generate(texts, () => buffered.push(server.bufferedAmount)))
  await waitUntil('the client is too slow', () => server.bufferedAmount > 0)
  client.resume()
  await sent
  await waitUntil('all have arrived', () => received.length === texts.length + 1)
  t.ok(buffered.every((bytes) => bytes === 0))
})

t.test('closes the connection of a client that is too slow for the changes', async (t) => {
  for (const isReady of [true, false]) {
    const { connection, closes } = await connect(t)
    if (isReady) await connection.sendItems(generate([]))
    while (closes.length === 0) connection.sendChanges([MIB])
    await connection.ended
    t.same(closes, [CLOSE_CODES.overloaded])
    connection.sendChanges([MIB])
  }
})

t.test('sends its time, and ends when the client does not respond to pings', async (t) => {
  const { client, received, connection } = await connect(t, { aliveMs: 5 })
  client.resume()
  await waitUntil('ten messages', () => received.length > 10)
  t.equal(received[0], `{"type":"alive","at":"${AT}"}`)
  client.pause()
  await connection.ended
})

t.test('splits messages by their items and their length', async (t) => {
  const items = Array.from({ length: 450 }, (_, i) => `{"id":${i}}`)
  const lengths = [...createItemsMessages('boxes', items)].map((text) => JSON.parse(text).items.length)
  t.same(lengths, [200, 200, 50])
  const long = JSON.stringify('a'.repeat(200 * 1024))
  t.equal([...createItemsMessages('boxes', [long, long, '1'])].length, 2)
  t.same([...createItemsMessages('boxes', [])], [])
  const changes = [...createChangedMessages('boxes', { shown: ['{"id":"a"}'], removed: ['b'] }, AT)]
  t.same(
    changes.map((text) => JSON.parse(text)),
    [
      { type: 'changed', kind: 'boxes', items: [], removed: ['b'], at: AT },
      { type: 'changed', kind: 'boxes', items: [{ id: 'a' }], removed: [], at: AT },
    ],
  )
})
