// Terminal sessions that continue with the next agent.
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { SyncRecorder } from '../../../agent/exec/history/sync-recorder.ts'
import { TERMINAL_HOST_VERSIONS } from '../../../shared/agent-build.ts'
import { skipWithoutTerminalHost as skip } from '../../support/native-parts.ts'
import { createSeededRandom } from '../../support/random.ts'
import { describeLines } from '../../support/terminal-screen.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { attachClient, createSessions } from './support.ts'

const count = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}\r\n`).join('')

/** Prints lines up to the number in the file `until`. */
const COUNTER =
  'i=0; while :; do [ $i -lt "$(cat until)" ] && { i=$((i+1)); echo "line $i"; } || sleep 0.01; done'

function createCounter(t: Test, options: Parameters<typeof createSessions>[1] = {}) {
  const sessions = createSessions(t, options)
  const path = join(sessions.home, 'until')
  /** The counter never reads an empty file. */
  const countTo = (last: number) => {
    writeFileSync(`${path}.new`, String(last))
    renameSync(`${path}.new`, path)
  }
  countTo(0)
  return { ...sessions, countTo }
}

t.test('a client continues its output with the next agent', { skip }, async (t) => {
  const { start, close, createNext, countTo } = createCounter(t)
  countTo(100)
  const session = await start({ command: COUNTER, cols: 90, rows: 30 })
  const client = attachClient(session, { client: 'a' })
  await client.waitForOutput(/line 100\r\n/)
  await close()
  client.disconnect()
  countTo(150)
  const next = await createNext()
  countTo(200)
  const again = next.get('test')
  t.match(again.describe(), {
    session: 'test',
    pid: session.pid,
    command: COUNTER,
    cols: 90,
    rows: 30,
    clients: 0,
  })
  t.equal(again.describe().startedAt, session.describe().startedAt)
  t.ok(again.hadClient('a'))
  const offset = client.received()
  const continued = attachClient(again, { client: 'a', offset })
  t.equal(continued.find('attached')?.stdoutOffset, offset)
  t.equal(continued.find('screen'), undefined, 'the output continues without a screen')
  await continued.waitForOutput(/line 200\r\n/)
  t.equal(client.output() + continued.output(), count(1, 200))
  const viewer = attachClient(again, { client: 'b' })
  await waitUntil('the viewer has the last line', () => describeLines(viewer.terminal).includes('line 200'))
})

t.test('a session is continued by an agent that can use its host', { skip }, async (t) => {
  const { start, canContinue, close, createNext } = createSessions(t)
  t.ok(canContinue([]), 'no session runs')
  const starting = start()
  t.notOk(canContinue(TERMINAL_HOST_VERSIONS), 'the session is being started')
  await starting
  t.ok(canContinue(TERMINAL_HOST_VERSIONS))
  t.notOk(canContinue(TERMINAL_HOST_VERSIONS.map((version) => version + 1)))
  await close()
  const next = await createNext()
  t.ok(next.canContinue(TERMINAL_HOST_VERSIONS))
  t.notOk(next.canContinue([]))
})

t.test('input is written once when the agent exits while the program does not read', { skip }, async (t) => {
  const { start, close, createNext, home } = createSessions(t)
  const session = await start({
    command: 'stty raw -echo; echo ready; while [ ! -e go ]; do sleep 0.01; done; exec cat',
  })
  const client = attachClient(session, { client: 'a' })
  await client.waitForOutput(/ready/)
  const text = Array.from({ length: 30_000 }, (_, index) => `${index}\n`).join('')
  for (let at = 0; at < text.length; at += 50_000) client.type(text.slice(at, at + 50_000))
  // The agent sends the first part to the host.
  await setImmediate()
  await close()
  client.disconnect()
  const next = await createNext()
  const offset = client.received()
  const continued = attachClient(next.get('test'), { client: 'a', offset })
  const accepted = continued.find('attached')?.stdinOffset ?? 0
  t.ok(accepted > 0 && accepted < text.length, `${accepted} of ${text.length} bytes were accepted`)
  continued.type(text.slice(accepted, accepted + 60_000))
  for (let at = accepted + 60_000; at < text.length; at += 60_000) continued.type(text.slice(at, at + 60_000))
  writeFileSync(join(home, 'go'), '')
  await waitUntil('all input is printed', () => continued.received() - offset >= text.length)
  t.equal(continued.output(), text)
})

t.test('a client is not told that input is accepted before its host has it', { skip }, async (t) => {
  const { start, close, createNext, home } = createSessions(t)
  const session = await start({
    command: 'stty raw -echo; echo ready; while [ ! -e go ]; do sleep 0.01; done; exec cat',
  })
  const client = attachClient(session, { client: 'a' })
  await client.waitForOutput(/ready/)
  const text = Array.from({ length: 20_000 }, (_, index) => `${index}\n`).join('')
  // The program does not read: the host holds the first part, and the agent the second one.
  for (let at = 0; at < 120_000; at += 60_000) client.type(text.slice(at, at + 60_000))
  await setImmediate()
  await close()
  client.disconnect()
  const next = await createNext()
  const second = attachClient(next.get('test'), { client: 'a', offset: client.received() })
  const accepted = second.find('attached')?.stdinOffset ?? 0
  second.type(text.slice(accepted))
  second.disconnect()
  const third = attachClient(next.get('test'), { client: 'a', offset: client.received() })
  const confirmed = third.find('attached')?.stdinOffset ?? 0
  await next.close()
  third.disconnect()
  const offset = third.received()
  const afterwards = (await createNext()).get('test')
  const last = attachClient(afterwards, { client: 'a', offset })
  t.equal(last.find('attached')?.stdinOffset, confirmed)
  last.type(text.slice(confirmed))
  last.disconnect()
  // The agent is writing some of these bytes: it ignores them when they arrive again.
  const again = attachClient(afterwards, { client: 'a', offset })
  again.type(text.slice(again.find('attached')?.stdinOffset ?? 0))
  writeFileSync(join(home, 'go'), '')
  await waitUntil('all input is printed', () => again.received() - offset >= text.length)
  t.equal(again.output(), text)
  await waitUntil('all input is confirmed', () => again.find('stdin')?.offset === text.length)
})

t.test('a program that prints without an agent loses nothing', { skip }, async (t) => {
  const { start, close, createNext, home } = createSessions(t)
  const session = await start({
    command: 'while [ ! -e go ]; do sleep 0.01; done; seq -w 1 400000; exec sleep 1000',
  })
  const client = attachClient(session, { client: 'a' })
  await close()
  client.disconnect()
  writeFileSync(join(home, 'go'), '')
  const next = await createNext()
  const continued = attachClient(next.get('test'), { client: 'a', offset: 0 })
  t.equal(continued.find('screen'), undefined)
  await waitUntil('all output', () => continued.received() === 400_000 * 8)
  t.match(continued.output().slice(-16), '399999\r\n400000\r\n')
})

t.test(
  'a session that exited without an agent has its output, its exit and its record',
  { skip },
  async (t) => {
    const recorded: unknown[] = []
    let isStored = false
    const recorder: SyncRecorder = {
      start({ record }, pid) {
        recorded.push({ started: record?.commandId, pid })
        const commandId = record?.commandId ?? ''
        return {
          commandId,
          async finish({ status, exitCode }) {
            recorded.push({ status, exitCode })
            return isStored
          },
        }
      },
      waitUntilIdle: () => Promise.resolve(),
      close: () => undefined,
    }
    const { start, close, createNext, home, dir } = createSessions(t, { recorder })
    const record = { commandId: `p_${'1'.repeat(24)}`, claimsToken: 'token', keepOutput: true }
    const session = await start({
      record,
      command: 'while [ ! -e go ]; do sleep 0.01; done; seq -w 1 9999; touch done; exit 7',
    })
    const client = attachClient(session, { client: 'a' })
    await close()
    client.disconnect()
    writeFileSync(join(home, 'go'), '')
    await waitUntil('the program has exited', () => existsSync(join(home, 'done')))
    const next = await createNext()
    const exited = await waitUntil('the session has exited', () => next.getExited('test') ?? false)
    const continued = attachClient(exited, { client: 'a', offset: 0 })
    t.match(await continued.waitForMessage('exit'), { exitCode: 7, stdoutOffset: 9_999 * 6 })
    t.equal(continued.received(), 9_999 * 6)
    const started = { started: record.commandId, pid: session.pid }
    const exit = { status: 'exited', exitCode: 7 }
    t.same(recorded, [started, started, exit])
    await next.close()
    isStored = true
    const third = await createNext()
    t.same(recorded, [started, started, exit, started, exit], 'an exit that was not stored is recorded again')
    await third.close()
    const fourth = await createNext()
    t.ok(fourth.getExited('test'), 'the exit can be read after another restart')
    t.equal(recorded.length, 5, 'the exit is recorded once')
    await fourth.terminate()
    t.same(readdirSync(dir), [], 'the directory is removed')
  },
)

t.test('the screen and the modes of a program with much output are restored', { skip }, async (t) => {
  const { start, close, createNext, countTo } = createCounter(t)
  const session = await start({
    command: `printf '\\033[?1049h\\033[?2004h'; seq -w 1 600000; echo end; ${COUNTER}`,
  })
  const client = attachClient(session)
  await waitUntil('the end', () => describeLines(client.terminal).includes('end'))
  await close()
  const next = await createNext()
  countTo(1)
  const viewer = attachClient(next.get('test'))
  await waitUntil('more output', () => describeLines(viewer.terminal).includes('line 1'))
  t.equal(viewer.terminal.buffer.active.type, 'alternate')
  t.ok(viewer.terminal.modes.bracketedPasteMode)
})

t.test('sessions that are terminated, or whose host was killed, do not come back', { skip }, async (t) => {
  const { start, close, terminate, createNext, dir } = createSessions(t)
  await start({ session: 'killed', command: 'exec sleep 1000' })
  const [name = ''] = readdirSync(dir)
  const [, , host] = readFileSync(join(dir, name, 'started'), 'utf8').split(' ')
  await start({ session: 'open', command: 'exec sleep 1000' })
  await close()
  process.kill(Number(host), 'SIGKILL')
  const next = await createNext()
  t.same(
    next.list().map((session) => session.name),
    ['open'],
  )
  t.equal(readdirSync(dir).length, 1)
  await next.terminate()
  t.same(readdirSync(dir), [])
  await terminate()
  t.same((await createNext()).list(), [])
})

t.test('a session ends when its host is killed', { skip }, async (t) => {
  const { start, dir } = createSessions(t)
  const session = await start({ command: 'exec sleep 1000' })
  const client = attachClient(session)
  const [name = ''] = readdirSync(dir)
  const [, , host] = readFileSync(join(dir, name, 'started'), 'utf8').split(' ')
  process.kill(Number(host), 'SIGKILL')
  t.match(await client.waitForMessage('exit'), { status: 'killed', signal: 'HUP' })
})

t.test('input and output are exact over many restarts', { skip }, async (t) => {
  const random = createSeededRandom(1)
  const { start, close, createNext } = createSessions(t)
  const session = await start({ command: 'stty raw -echo; printf ready; exec cat' })
  const text = Array.from({ length: 40_000 }, (_, index) => `${index}\n`).join('')
  let client = attachClient(session, { client: 'a' })
  await client.waitForOutput(/ready/)
  let output = ''
  let position = 0
  let closeLast: () => Promise<void> = close
  for (let round = 0; round < 20; round++) {
    for (let sent = position; sent < Math.min(text.length, position + 100_000); sent += 7_000)
      client.type(text.slice(sent, sent + 7_000))
    const delay = Math.floor(random() * 10)
    for (let turn = 0; turn < delay; turn++) await setImmediate()
    await closeLast()
    client.disconnect()
    output += client.output()
    const offset = client.received()
    const next = await createNext()
    closeLast = next.close
    client = attachClient(next.get('test'), { client: 'a', offset })
    t.equal(client.find('attached')?.stdoutOffset, offset)
    position = client.find('attached')?.stdinOffset ?? 0
  }
  for (let sent = position; sent < text.length; sent += 60_000) client.type(text.slice(sent, sent + 60_000))
  await waitUntil('all output', () => output.length + client.output().length >= 'ready'.length + text.length)
  t.equal(output + client.output(), `ready${text}`)
})
