// One terminal session with its clients: input, output, size, exit, termination.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { findNativeProgram } from '../../../agent/exec/native-program.ts'
import { TERMINAL_HOST_VERSIONS } from '../../../shared/agent-build.ts'
import { NATIVE_PARTS } from '../../../shared/native-file-names.ts'
import { skipWithoutSpawner } from '../../support/native-parts.ts'
import { describeLines, describeTerminal } from '../../support/terminal-screen.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { isAlive } from '../exec/support.ts'
import { attachClient, createSessions } from './support.ts'

t.test('a login shell runs commands in the home directory', async (t) => {
  const { start, home } = createSessions(t)
  const client = attachClient(await start(), { isNew: true })
  t.match(client.messages[0], {
    type: 'attached',
    session: 'test',
    isNew: true,
    stdinOffset: 0,
    stdoutOffset: 0,
  })
  client.type('tty; pwd; echo "TERM=$TERM COLORTERM=$COLORTERM"; stty size\n')
  await client.waitForOutput(/\/dev\/pts\/\d+\r\n/)
  await client.waitForOutput(new RegExp(`${home}\r\n`))
  await client.waitForOutput(/TERM=xterm-256color COLORTERM=truecolor\r\n24 80\r\n/)
  client.type('exit 3\n')
  t.match(await client.waitForMessage('exit'), {
    status: 'exited',
    exitCode: 3,
    signal: null,
    stdoutOffset: client.received(),
  })
  client.send({ type: 'exitReceived' })
  t.ok(client.isClosed())
})

t.test('a command runs with its variables, directory and size', async (t) => {
  const { start } = createSessions(t)
  const session = await start({
    command: 'echo "$A $B $TERM"; pwd; stty size; tput cols 2>&1; cat',
    cwd: '/usr',
    env: { B: 'request' },
    boxEnv: { A: 'box', B: 'box' },
    term: 'vt100',
    cols: 100,
    rows: 30,
  })
  t.match(session.describe(), { session: 'test', cols: 100, rows: 30, clients: 0, pid: session.pid })
  const client = attachClient(session)
  t.match(client.find('screen'), { cols: 100, rows: 30 })
  await waitUntil('the screen has the output', () => describeLines(client.terminal)[2] === '30 100')
  t.same(describeLines(client.terminal).slice(0, 2), ['box request vt100', '/usr'])
})

t.test('Ctrl-C interrupts the program', async (t) => {
  const { start } = createSessions(t)
  const client = attachClient(await start({ command: 'echo ready; exec sleep 1000' }))
  await waitUntil('it runs', () => describeLines(client.terminal)[0] === 'ready')
  client.type('\x03')
  t.match(await client.waitForMessage('exit'), { status: 'killed', exitCode: null, signal: 'INT' })
})

t.test('all output arrives before the exit', async (t) => {
  const { start } = createSessions(t)
  for (let round = 0; round < 8; round++) {
    const session = await start({
      session: `s${round}`,
      command: 'seq -w 1 9999; sleep 1000 & seq -w 1 999; exit 7',
    })
    const client = attachClient(session)
    const exit = await client.waitForMessage('exit')
    t.match(exit, { exitCode: 7, stdoutOffset: 9_999 * 6 + 999 * 5 })
    t.equal(client.received(), 9_999 * 6 + 999 * 5)
    t.match(describeLines(client.terminal).at(-2), '999')
    await session.kill()
  }
})

t.test('all output arrives when the program exits while it is paused', async (t) => {
  const { start } = createSessions(t)
  const session = await start({ command: 'read line; seq -w 1 999999' })
  const client = attachClient(session, { acks: false })
  client.type('\n')
  await waitUntil('the output stalls', () => client.received() >= 1024 * 1024)
  await session.kill()
  await session.exit
  const acking = setInterval(client.ack, 5)
  t.teardown(() => clearInterval(acking))
  const exit = await client.waitForMessage('exit')
  t.equal(client.received(), exit.type === 'exit' && exit.stdoutOffset)
  t.match(client.output(), /\r\n(\d{6})\r\n(?:\d{0,6}\r?)$/)
})

t.test('clients see the same screen, and the size of the last resize', async (t) => {
  const { start } = createSessions(t)
  const session = await start({ command: 'trap "stty size" WINCH; echo ready; while :; do sleep 0.05; done' })
  const first = attachClient(session)
  await waitUntil('ready', () => describeLines(first.terminal)[0] === 'ready')
  const second = attachClient(session, { size: { cols: 120, rows: 40 } })
  await second.waitForOutput(/40 120\r\n/)
  t.match(first.find('resized'), { cols: 120, rows: 40 })
  first.send({ type: 'resize', cols: 90, rows: 20 })
  await second.waitForOutput(/20 90\r\n/)
  t.match(second.find('resized'), { cols: 90, rows: 20 })
  t.match(session.describe(), { cols: 90, rows: 20, clients: 2 })
  await waitUntil('both terminals have the output', () => first.received() === second.received())
  t.same(describeTerminal(first.terminal), describeTerminal(second.terminal))
  second.send({ type: 'detach' })
  t.ok(second.isClosed())
  t.equal(session.describe().clients, 1)
  t.notOk(session.hasExited())
})

t.test('a client that disconnected continues its output and input', async (t) => {
  const { start } = createSessions(t)
  const session = await start({ command: 'stty raw -echo; echo ready; exec cat' })
  let client = attachClient(session, { client: 'a' })
  await waitUntil('ready', () => describeLines(client.terminal)[0] === 'ready')
  const whole = attachClient(session)
  const text = 'the quick brown fox jumps over the lazy dog. '.repeat(200)
  let position = 0
  for (let round = 0; position < text.length; round++) {
    // Bytes that were sent but not accepted are lost with the connection, and are sent again.
    for (let sent = position; sent < text.length && sent < position + 700; sent += 70)
      client.type(text.slice(sent, Math.min(sent + 70, text.length)))
    if (round % 2 === 0) await new Promise((resolve) => setTimeout(resolve, round))
    client.disconnect()
    const offset = client.received()
    client = attachClient(session, { client: 'a', offset })
    const attached = client.find('attached')
    t.equal(attached?.stdoutOffset, offset)
    t.equal(client.find('screen'), undefined, 'the output continues without a screen')
    position = attached?.stdinOffset ?? 0
  }
  await waitUntil('all output', () => whole.received() === 'ready\n'.length + text.length)
  t.equal(whole.output().slice(-text.length), text)
})

t.test('a second connection with the same id replaces the first one', async (t) => {
  const { start } = createSessions(t)
  const session = await start({ command: 'cat' })
  const first = attachClient(session, { client: 'a' })
  first.type('one\n')
  await first.waitForOutput(/one\r\none\r\n/)
  const second = attachClient(session, { client: 'a' })
  t.match(first.find('error'), { code: 'invalid_request' })
  t.ok(first.isClosed())
  t.match(second.find('attached'), { stdinOffset: 4 })
  t.equal(session.describe().clients, 1)
})

t.test('input for a program that does not read is bounded', async (t) => {
  const { start } = createSessions(t)
  const session = await start({ command: 'stty raw -echo; echo ready; exec sleep 1000' })
  const client = attachClient(session)
  await waitUntil('ready', () => describeLines(client.terminal)[0] === 'ready')
  for (let i = 0; i < 20 && !client.isClosed(); i++) client.type('x'.repeat(65_536))
  t.match(client.find('error'), { code: 'invalid_request', message: /more stdin/ })
  t.ok(client.isClosed())
  const other = attachClient(session)
  for (let i = 0; i < 20_000 && !other.isClosed(); i++) other.type('x')
  t.match(other.find('error'), { code: 'invalid_request' })
})

t.test('an acknowledgement of output that was not sent closes the connection', async (t) => {
  const { start } = createSessions(t)
  const client = attachClient(await start())
  client.send({ type: 'ack', stdoutOffset: 1_000_000, stderrOffset: 0 })
  t.match(client.find('error'), { code: 'invalid_request' })
})

t.test('a megabyte of input arrives unchanged', async (t) => {
  const { start, home } = createSessions(t)
  const session = await start({
    command: 'stty raw -echo; echo ready; head -c 1000000 > out; echo done; sleep 1000',
  })
  const client = attachClient(session)
  await waitUntil('ready', () => describeLines(client.terminal)[0] === 'ready')
  const bytes = Buffer.alloc(1_000_000, 'abcdefghijklmnopqrstuvwxyz0123456789\n')
  for (let at = 0; at < bytes.length; at += 60_000)
    client.send({ type: 'stdinBytes', bytes: bytes.subarray(at, at + 60_000) })
  await waitUntil('the program has read everything', () =>
    describeLines(client.terminal).join().includes('done'),
  )
  t.ok(readFileSync(join(home, 'out')).equals(bytes))
  t.match(client.find('stdin'), { offset: bytes.length })
})

t.test('kill terminates a program that ignores SIGHUP, and its descendants', async (t) => {
  const { start, home } = createSessions(t)
  const session = await start({
    command: 'trap "" HUP; setsid sleep 1000 & echo $! > child; echo ready; while :; do sleep 0.1; done',
  })
  const client = attachClient(session)
  await waitUntil('ready', () => describeLines(client.terminal)[0] === 'ready')
  const child = Number(readFileSync(join(home, 'child'), 'utf8'))
  t.match(await session.kill(100), { signal: 'TERM', survivors: [] })
  t.notOk(isAlive(child))
  t.match(await client.waitForMessage('exit'), { status: 'killed', signal: 'TERM' })
})

t.test('a session without a host ends with the agent', async (t) => {
  const { start, canContinue, hosts } = createSessions(t)
  const session = await start()
  const hasHost = hosts !== null && findNativeProgram(NATIVE_PARTS.terminalHost) !== undefined
  t.equal(canContinue(TERMINAL_HOST_VERSIONS), hasHost)
  await session.kill()
  await session.exit
  t.ok(canContinue(TERMINAL_HOST_VERSIONS))
})

t.test('SIGHUP is enough for an interactive shell', async (t) => {
  const { start } = createSessions(t)
  const session = await start()
  const client = attachClient(session)
  client.type('echo re""ady\n')
  await client.waitForOutput(/ready\r\n/)
  t.match(await session.kill(), { signal: 'HUP', survivors: [] })
})

t.test('a program has no descriptors of other sessions', { skip: skipWithoutSpawner }, async (t) => {
  const { start } = createSessions(t)
  await start({ session: 'first', command: 'sleep 1000' })
  const client = attachClient(
    await start({ session: 'second', command: 'ls -l /proc/self/fd; echo done; sleep 1000' }),
  )
  await waitUntil('done', () => describeLines(client.terminal).join().includes('done'))
  const targets =
    describeLines(client.terminal)
      .join('\n')
      .match(/-> \S+/g) ?? []
  t.equal(targets.filter((target) => target.includes('/dev/pts/')).length, 3)
  t.same(
    targets.filter((target) => target.includes('ptmx')),
    [],
  )
})

t.test('input and output of an attached client are activity', async (t) => {
  const { start, activity } = createSessions(t)
  const client = attachClient(await start({ command: 'cat' }))
  const before = client.received()
  client.type('x\n')
  await waitUntil('the echo', () => client.received() > before)
  t.equal(activity.idleSeconds(), 0)
})
