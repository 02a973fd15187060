// A program that writes without end neither fills the memory nor blocks clients that read.
import t from 'tap'
import { readProcess } from '../../../agent/exec/process-table.ts'
import { describeLines } from '../../support/terminal-screen.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { attachClient, createSessions } from './support.ts'

const MiB = 1024 * 1024
const WINDOW = MiB

type Client = ReturnType<typeof attachClient>

/** The line above the cursor. */
const lastLine = ({ terminal }: Client) => describeLines(terminal).at(-2)

/** The emulator of a client processes received bytes later. */
const waitForLastLine = (client: Client) =>
  waitUntil('the terminal shows the last line', () => lastLine(client) === '599999')

t.test('a client that does not acknowledge stops the program after the window', async (t) => {
  const { start } = createSessions(t)
  const session = await start({ command: 'yes' })
  const client = attachClient(session, { acks: false })
  await waitUntil('the window is full', () => client.received() >= WINDOW)
  await waitUntil('yes is blocked in write', () => readProcess(session.pid)?.state === 'S')
  const cpuTicks = readProcess(session.pid)?.cpuTicks
  const { received } = client
  const before = received()
  t.ok(before < WINDOW + 0.2 * MiB, `${before} bytes`)
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 5))
  t.equal(received(), before)
  t.ok((readProcess(session.pid)?.cpuTicks ?? 0) - (cpuTicks ?? 0) <= 1, 'the program waits')
  client.ack()
  await waitUntil('the output continues', () => received() > before)
  client.type('\x03')
  client.ack()
  const acking = setInterval(client.ack, 5)
  t.teardown(() => clearInterval(acking))
  t.match(await client.waitForMessage('exit'), { signal: 'INT' })
})

t.test('a slow client gets the screen while a fast one gets everything', async (t) => {
  const { start } = createSessions(t)
  const session = await start({ command: 'read line; seq -w 1 599999; read line' })
  const fast = attachClient(session)
  const slow = attachClient(session, { acks: false })
  fast.type('\n')
  await waitUntil('the fast client has everything', () => fast.received() >= 7 * 599_999)
  t.ok(slow.received() < WINDOW + 0.2 * MiB)
  t.equal(slow.messages.filter(({ type }) => type === 'screen').length, 1)
  slow.ack()
  await waitForLastLine(slow)
  await waitForLastLine(fast)
  t.equal(slow.messages.filter(({ type }) => type === 'screen').length, 2)
  t.ok(slow.receivedBytes() < 3 * MiB)
  t.same(describeLines(slow.terminal).slice(-24), describeLines(fast.terminal).slice(-24))
})

t.test('a connection that does not accept bytes stops only its client', async (t) => {
  const { start } = createSessions(t)
  const session = await start({ command: 'read line; seq -w 1 599999; read line' })
  const stalled = attachClient(session)
  const unstall = stalled.stall()
  const other = attachClient(session)
  other.type('\n')
  await waitUntil('the other client has everything', () => other.received() >= 7 * 599_999)
  t.ok(stalled.receivedBytes() < MiB)
  unstall()
  await waitForLastLine(stalled)
  await waitForLastLine(other)
  t.same(describeLines(stalled.terminal).slice(-24), describeLines(other.terminal).slice(-24))
})

t.test('without a client the program runs, and the next client gets the last screen', async (t) => {
  const { start } = createSessions(t)
  const session = await start({ command: 'seq -w 1 599999; read line' })
  let client = attachClient(session)
  while (client.received() < 7 * 599_999) {
    client.disconnect()
    client = attachClient(session)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await waitForLastLine(client)
  t.equal(session.describe().clients, 1)
})

t.test('a client that stayed away for more output than is retained gets the screen', async (t) => {
  const { start } = createSessions(t)
  const session = await start({ command: 'seq -w 1 999; read line; seq -w 1 599999; read line' })
  const first = attachClient(session)
  await waitUntil('the first part', () => first.received() === 5 * 999)
  first.disconnect()
  const other = attachClient(session)
  other.type('\n')
  await waitUntil('everything', () => other.received() >= 7 * 599_999)
  const again = attachClient(session, { offset: first.received() })
  await waitForLastLine(again)
  await waitForLastLine(other)
  t.ok(again.find('screen'))
  t.same(describeLines(again.terminal).slice(-24), describeLines(other.terminal).slice(-24))
})

t.test('an offset beyond the output gets the screen', async (t) => {
  const { start } = createSessions(t)
  const client = attachClient(await start({ command: 'echo ready; sleep 1000' }), { offset: 1_000_000 })
  t.ok(client.find('screen'))
  await waitUntil('ready', () => describeLines(client.terminal)[0] === 'ready')
})
