// The viewers of a desktop, with a script in place of x11vnc and a WebSocket server in place of the coordinator.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { type WebSocket, WebSocketServer } from 'ws'
import { createActivityTracker } from '../../../agent/activity-tracker.ts'
import { createViewers } from '../../../agent/desktop/viewers.ts'
import { createPortDialer } from '../../../agent/ports/port-dialer.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createFakeDesktop } from './fake-programs.ts'

/** Sends a greeting, and returns what it receives. */
const ECHO = 'printf "RFB 003.008\\n"; exec /bin/cat'

async function setUp(t: Test, x11vnc: string | null = ECHO) {
  const fake = createFakeDesktop(t, { x11vnc })
  const desktop = await fake.open()
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const portDialer = createPortDialer({
    boxId: 'box',
    readUrl: async () => `http://127.0.0.1:${port}`,
    readToken: async () => 'token',
  })
  t.teardown(() => portDialer.close())
  let now = 0
  const activity = createActivityTracker({ now: () => now })
  const viewers = createViewers({ desktop, portDialer, activity, log: { debug: () => undefined } })
  t.teardown(() => viewers.close())
  const countViewers = async () => (await desktop.status()).session?.viewers
  return {
    ...{ fake, desktop, viewers, server, activity, countViewers },
    pass: (ms: number) => {
      now += ms
    },
    /** The coordinator's end, and the bytes that it has received. */
    async connect() {
      const connected = once(server, 'connection')
      await viewers.connect('id')
      const [ws] = (await connected) as [WebSocket]
      const received: Buffer[] = []
      ws.on('message', (data: Buffer) => received.push(data))
      return { ws, text: () => Buffer.concat(received).toString('latin1') }
    },
  }
}

t.test('relays bytes in both directions, and counts the viewer', async (t) => {
  const { desktop, connect, countViewers } = await setUp(t)
  await desktop.start({})
  const { ws, text } = await connect()
  await waitUntil('the greeting arrives', () => text() === 'RFB 003.008\n')
  ws.send(Buffer.from('\x00\xffkey', 'latin1'))
  await waitUntil('the bytes come back', () => text().endsWith('\x00\xffkey'))
  t.equal(await countViewers(), 1)
})

t.test('a viewer that disconnects ends its x11vnc', async (t) => {
  for (const disconnect of [(ws: WebSocket) => ws.terminate(), (ws: WebSocket) => ws.send(Buffer.alloc(0))]) {
    const { desktop, connect, countViewers, fake } = await setUp(t)
    await desktop.start({})
    await waitUntil('the desktop runs', () => fake.listProcesses().length === 4)
    const { ws, text } = await connect()
    await waitUntil('the greeting arrives', () => text() !== '')
    t.equal(fake.listProcesses().length, 5)
    disconnect(ws)
    await waitUntil('x11vnc has exited', () => fake.listProcesses().length === 4)
    await waitUntil('the viewer is not counted', async () => (await countViewers()) === 0)
  }
})

t.test('the stop of the desktop disconnects the viewers', async (t) => {
  const { desktop, connect, fake } = await setUp(t)
  await desktop.start({})
  const { ws } = await connect()
  const closed = once(ws, 'close')
  await desktop.stop('desktop')
  await closed
  t.same(fake.listProcesses(), [])
})

t.test('an x11vnc that does not exit with its connection is terminated', async (t) => {
  const { desktop, connect, fake } = await setUp(t, 'printf ready; exec /bin/sleep 1000')
  await desktop.start({})
  await waitUntil('the desktop runs', () => fake.listProcesses().length === 4)
  const { ws, text } = await connect()
  await waitUntil('it runs', () => text() === 'ready')
  ws.terminate()
  await waitUntil('x11vnc has exited', () => fake.listProcesses().length === 4)
})

t.test('refuses viewers without a desktop, without x11vnc, and above the limit', async (t) => {
  const { desktop, viewers, connect, fake } = await setUp(t, null)
  await t.rejects(viewers.connect('id'), { code: 'not_found', message: /no running desktop/ })
  fake.install('x11vnc', ECHO)
  await desktop.start({})
  for (let count = 0; count < LIMITS.desktop.viewers; count++) await connect()
  await t.rejects(viewers.connect('id'), { code: 'exec_failed', message: /has 8 viewers/ })
})

t.test('concurrent viewers count against the limit', async (t) => {
  const { desktop, viewers } = await setUp(t)
  await desktop.start({})
  const ids = Array.from({ length: LIMITS.desktop.viewers + 2 }, (_, index) => `id-${index}`)
  const results = await Promise.allSettled(ids.map(viewers.connect))
  t.equal(results.filter(({ status }) => status === 'fulfilled').length, LIMITS.desktop.viewers)
})

t.test('a coordinator that refuses the dial-back connection: x11vnc exits', async (t) => {
  const { desktop, viewers, server, countViewers, fake } = await setUp(t)
  await desktop.start({})
  await waitUntil('the desktop runs', () => fake.listProcesses().length === 4)
  server.shouldHandle = () => false
  await viewers.connect('id')
  await waitUntil('the viewer is not counted', async () => (await countViewers()) === 0)
  await waitUntil('x11vnc has exited', () => fake.listProcesses().length === 4)
})

t.test('bytes keep the box active, and an open connection does not', async (t) => {
  const { desktop, connect, activity, pass } = await setUp(t)
  await desktop.start({})
  const { ws, text } = await connect()
  await waitUntil('the greeting arrives', () => text() !== '')
  pass(60_000)
  t.equal(activity.idleSeconds(), 60)
  ws.send(Buffer.from('x'))
  await waitUntil('the byte comes back', () => text().endsWith('x'))
  t.equal(activity.idleSeconds(), 0)
})
