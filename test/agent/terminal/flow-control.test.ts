// A program that writes without end neither fills the memory nor blocks clients that read.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { readProcess } from '../../../agent/process-table.ts'
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

t.test('a client that reads nothing gets no message for each of its own', async (t) => {
  const { start, home } = createSessions(t)
  const session = await start({
    command: 'stty raw -echo; printf ready; head -c 300 >/dev/null; touch read; cat',
  })
  const client = attachClient(session, { client: 'a' })
  await client.waitForOutput(/ready/)
  const resume = client.stall()
  for (let i = 1; i <= 300; i++) {
    client.type('x')
    client.send({ type: 'resize', cols: 80 + i, rows: 24 })
    await setImmediate()
  }
  await waitUntil('all input is read', () => existsSync(join(home, 'read')))
  const count = (type: string) => client.messages.filter((message) => message.type === type).length
  t.ok(count('stdin') + count('resized') < 5, `${count('stdin')} and ${count('resized')} messages`)
  resume()
  await waitUntil('the input is confirmed', () => client.find('stdin')?.offset === 300)
  await waitUntil('the size is sent', () => client.find('resized')?.cols === 380)
})
