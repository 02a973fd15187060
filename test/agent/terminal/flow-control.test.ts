// A program that writes without end neither fills the memory nor blocks clients that read.
import t from 'tap'
import { readProcess } from '../../../agent/exec/process-table.ts'
import { describeLines } from '../../support/terminal-screen.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { attachClient, createSessions } from './support.ts'

const MiB = 1024 * 1024
const WINDOW = MiB
/** Of 8 bytes each: more than the window and the retained 2 MiB together. */
const LINES = 499_999

type Client = ReturnType<typeof attachClient>

/** The line above the cursor. */
const lastLine = ({ terminal }: Client) => describeLines(terminal).at(-2)

/** The emulator of a client processes received bytes later. */
const waitForLastLine = (client: Client) =>
  waitUntil('the terminal shows the last line', () => lastLine(client) === String(LINES))

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

t.test(
  'clients that are slow, stalled or away get the screen while a fast one gets everything',
  async (t) => {
    const { start } = createSessions(t)
    const session = await start({ command: `seq -w 1 999; read line; seq -w 1 ${LINES}; read line` })
    const fast = attachClient(session)
    const slow = attachClient(session, { acks: false })
    const away = attachClient(session)
    await waitUntil('the first part', () =>
      [fast, slow, away].every(({ received }) => received() === 5 * 999),
    )
    away.disconnect()
    const stalled = attachClient(session)
    const unstall = stalled.stall()
    fast.type('\n')
    await waitUntil('the fast client has everything', () => fast.received() >= 7 * LINES)
    t.ok(slow.received() < WINDOW + 0.2 * MiB)
    t.equal(slow.messages.filter(({ type }) => type === 'screen').length, 1)
    t.ok(stalled.receivedBytes() < MiB)
    slow.ack()
    unstall()
    const again = attachClient(session, { offset: away.received() })
    for (const client of [slow, stalled, again, fast]) await waitForLastLine(client)
    t.equal(slow.messages.filter(({ type }) => type === 'screen').length, 2)
    t.ok(slow.receivedBytes() < 3 * MiB)
    t.ok(again.find('screen'), 'more output than is retained')
    for (const client of [slow, stalled, again])
      t.same(describeLines(client.terminal).slice(-24), describeLines(fast.terminal).slice(-24))
  },
)

t.test('without a client the program runs, and the next client gets the last screen', async (t) => {
  const { start } = createSessions(t)
  const session = await start({ command: `seq -w 1 ${LINES}; read line` })
  let client = attachClient(session)
  while (client.received() < 7 * LINES) {
    client.disconnect()
    client = attachClient(session)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await waitForLastLine(client)
  t.equal(session.describe().clients, 1)
})

t.test('an offset beyond the output gets the screen', async (t) => {
  const { start } = createSessions(t)
  const client = attachClient(await start({ command: 'echo ready; sleep 1000' }), { offset: 1_000_000 })
  t.ok(client.find('screen'))
  await waitUntil('ready', () => describeLines(client.terminal)[0] === 'ready')
})
