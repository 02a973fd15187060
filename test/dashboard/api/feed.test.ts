// The client of the feed: it begins again after each connect, connects again with growing delays, and stops when it is refused.
import t from 'tap'
import { createFeed, type SocketHandlers } from '../../../dashboard/api/feed.ts'
import { createItemCollector } from '../../../dashboard/data/items.ts'

function start() {
  const sockets: (SocketHandlers & { isClosed: boolean })[] = []
  const timers: { run: () => void; ms: number; isCancelled: boolean }[] = []
  const events: string[] = []
  const feed = createFeed({
    connect(handlers) {
      const socket = {
        ...handlers,
        isClosed: false,
        close() {
          this.isClosed = true
        },
      }
      sockets.push(socket)
      return socket
    },
    setTimer(run, ms) {
      const timer = { run, ms, isCancelled: false }
      timers.push(timer)
      return () => {
        timer.isCancelled = true
      }
    },
    random: () => 1,
    onBegin: () => events.push('begin'),
    onMessage: ({ type }) => events.push(type),
    onLost: ({ code, isRefused }) => events.push(`lost ${code} ${isRefused}`),
  })
  const send = (message: object) => sockets.at(-1)?.onMessage(JSON.stringify(message))
  const lose = (code: number) => sockets.at(-1)?.onClose(code)
  /** Runs the timer that is not cancelled, and returns its delay. */
  const runTimer = () => {
    const timer = timers.findLast(({ isCancelled }) => !isCancelled)
    timer?.run()
    return timer?.ms
  }
  return { feed, sockets, events, send, lose, runTimer }
}

t.test('connects again with growing delays, and begins again', async (t) => {
  const { feed, sockets, events, send, lose, runTimer } = start()
  feed.open()
  feed.open()
  t.equal(sockets.length, 1)
  send({ type: 'items', kind: 'boxes', items: [] })
  send({ type: 'ready', at: '' })
  lose(1012)
  t.same(events, ['begin', 'items', 'ready', 'lost 1012 false'])
  t.equal(runTimer(), 500)
  lose(1006)
  t.equal(runTimer(), 1000)
  for (let attempt = 0; attempt < 8; attempt += 1) {
    lose(1006)
    t.ok((runTimer() ?? 0) <= 15_000)
  }
  send({ type: 'ready', at: '' })
  t.same(events.slice(-2), ['begin', 'ready'])
  lose(1006)
  t.equal(runTimer(), 500, 'a complete snapshot resets the delay')
})

t.test('a connection without messages is lost', async (t) => {
  const { feed, sockets, events, send, runTimer } = start()
  feed.open()
  send({ type: 'alive', at: '' })
  t.equal(runTimer(), 35_000)
  t.ok(sockets[0]?.isClosed)
  t.equal(events.at(-1), 'lost 1006 false')
})

t.test('does not connect again when it is refused or closed', async (t) => {
  for (const end of ['refused', 'closed']) {
    const { feed, sockets, events, lose, runTimer } = start()
    feed.open()
    if (end === 'closed') feed.close()
    else lose(3000)
    t.equal(runTimer(), undefined)
    t.equal(sockets.length, 1)
    t.ok(sockets[0]?.isClosed)
    t.same(events, end === 'closed' ? [] : ['lost 3000 true'])
  }
})

t.test('shows the items when the snapshot is complete, and each change after it', async (t) => {
  const shown: Record<string, string[]>[] = []
  const collect = createItemCollector((changed) =>
    shown.push(Object.fromEntries(Object.entries(changed).map(([kind, map]) => [kind, [...map.keys()]]))),
  )
  // Only the id matters here.
  const items = (...ids: string[]) => ids.map((id) => ({ id })) as never
  collect({ type: 'items', kind: 'boxes', items: items('a') })
  collect({ type: 'items', kind: 'snapshots', items: items('s') })
  collect({ type: 'items', kind: 'boxes', items: items('b') })
  t.same(shown, [])
  collect({ type: 'ready', at: '' })
  collect({ type: 'changed', kind: 'boxes', items: items('c'), removed: ['a'], at: '' })
  collect({ type: 'changed', kind: 'operations', items: items('o'), removed: [], at: '' })
  collect({ type: 'alive', at: '' })
  t.same(shown, [
    { boxes: ['a', 'b'], snapshots: ['s'], operations: [] },
    { boxes: ['b', 'c'] },
    { operations: ['o'] },
  ])
})
