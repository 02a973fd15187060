// Terminal sessions over HTTP and WebSocket: start, attach, reattach, list, kill, exit, limits and refusals.
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { type AttachClient, connectAttachClient, RefusedError } from '../support/attach-client.ts'
import { createLimitedKey } from '../support/limited-key.ts'
import { createTerminal, describeLines, describeTerminal } from '../support/terminal-screen.ts'
import { waitUntil } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

const coordinator = sharedCoordinator
const { url, key, box, boxRequest, api, edge } = coordinator
const HEADERS = { authorization: `Bearer ${key}` }

type Query = Record<string, string | number>

function connect(query: Query, headers: Record<string, string> = HEADERS) {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) parameters.set(name, String(value))
  return connectAttachClient(`${url}/v1/box/${box.hostname}/terminal?${parameters}`, headers)
}

/** Attaches a client with a terminal of its own. */
async function attach(t: Test, query: Query = {}) {
  const client = await connect(query)
  t.teardown(() => client.cut())
  const terminal = createTerminal(80, 24)
  client.observeMessages((message) => {
    // Takes effect in the order of the output.
    if (message.type === 'screen') terminal.write('\x1bc')
    if (message.type === 'screen' || message.type === 'resized') terminal.resize(message.cols, message.rows)
  })
  client.takeOutput(({ bytes }) => terminal.write(bytes))
  const waitForLine = (line: string | RegExp) =>
    waitUntil(`the screen has a line ${line}`, () =>
      describeLines(terminal).some((text) => (typeof line === 'string' ? text === line : line.test(text))),
    )
  return { ...client, terminal, waitForLine }
}

const sessionOf = async (client: AttachClient) => (await client.waitFor('attached')).session ?? ''

async function listSessions(): Promise<{ session: string; clients: number }[]> {
  return (await boxRequest('GET', '/terminal/sessions')).json.sessions
}

const kill = (session: string) => boxRequest('DELETE', `/terminal/sessions/${session}`)

const findCommand = (commandId: string) =>
  waitUntil('the command is recorded as finished', async () => {
    const { json } = await api('GET', `/boxes/${box.id}/commands/${commandId}`)
    return json.command?.status !== 'running' && json.command
  })

t.test('a new session runs a login shell', async (t) => {
  const client = await attach(t, { cols: 100, rows: 30, term: 'vt220' })
  t.match(await client.waitFor('attached'), { session: /^\d+$/, isNew: true, stdinOffset: 0 })
  client.sendStdin('stty size; echo "$TERM $0"; exit 3\n')
  await client.waitForLine('30 100')
  await client.waitForLine(/^vt220 /)
  t.match(await client.waitFor('exit'), {
    ...{ status: 'exited', exitCode: 3, signal: null, timedOut: false },
    stdoutOffset: client.position.stdoutOffset,
  })
  client.send({ type: 'exitReceived' })
  t.equal(await client.closed, 1000)
  t.same(await listSessions(), [])
})

t.test('a started session is listed, recorded and terminated', async (t) => {
  const body = { session: 'work', command: 'echo hello; exec cat', cwd: '/tmp', env: { A: 'b' }, cols: 90 }
  const started = await boxRequest('POST', '/terminal/sessions', body)
  t.equal(started.status, 200)
  t.match(started.json, {
    ok: true,
    type: 'terminal.started',
    ...{ session: 'work', command: 'echo hello; exec cat', cols: 90, rows: 24, clients: 0 },
    commandId: /^p_/,
  })
  const { commandId } = started.json
  const running = await api('GET', `/boxes/${box.id}/commands/${commandId}`)
  t.match(running.json.command, { status: 'running', mode: 'sync', source: 'api', command: body.command })
  t.match(await listSessions(), [{ session: 'work', clients: 0 }])
  const killed = await kill('work')
  t.match(killed.json, { ok: true, type: 'terminal.killed', session: 'work', signal: 'HUP' })
  t.same(await listSessions(), [])
  t.match(await findCommand(commandId), { status: 'killed', signal: 'HUP', stdoutBytes: 0, cwd: '/tmp' })
})

t.test('the output of a program that exits before a client attaches', async (t) => {
  const { json } = await boxRequest('POST', '/terminal/sessions', { command: 'echo quick; exit 4' })
  await findCommand(json.commandId)
  const client = await attach(t, { session: json.session, create: 'never' })
  await client.waitForLine('quick')
  t.match(await client.waitFor('exit'), { exitCode: 4 })
  await t.rejects(connect({ session: json.session, create: 'never' }), /status 404/)
})

t.test('a session survives its clients, and shows each new one the same screen', async (t) => {
  const first = await attach(t, { session: 'main' })
  first.sendStdin('printf "\\033[1;31mred\\033[m\\n"; echo re""ady\n')
  await first.waitForLine('ready')
  first.cut()
  await waitUntil('the client has left', async () => (await listSessions())[0]?.clients === 0)
  const second = await attach(t, { session: 'main' })
  t.match(await second.waitFor('attached'), { session: 'main', isNew: false })
  await second.waitForLine('ready')
  const third = await attach(t, { session: 'main', create: 'never' })
  third.sendStdin('echo al""l\n')
  await second.waitForLine('all')
  await waitUntil(
    'both have the same output',
    () => second.position.stdoutOffset === third.position.stdoutOffset,
  )
  t.same(describeTerminal(third.terminal), describeTerminal(second.terminal))
  t.match(await listSessions(), [{ session: 'main', clients: 2 }])
  second.send({ type: 'resize', cols: 111, rows: 33 })
  t.match(await third.waitFor('resized'), { cols: 111, rows: 33 })
  third.send({ type: 'detach' })
  t.equal(await third.closed, 1000)
  await kill('main')
  t.match(await second.waitFor('exit'), { status: 'killed', signal: 'HUP' })
})

t.test('a client continues output and input after a cut', async (t) => {
  const client = randomBytes(8).toString('hex')
  const first = await attach(t, { client })
  const session = await sessionOf(first)
  first.sendStdin('stty -echo; echo re""ady; cat\n')
  await first.waitForLine('ready')
  first.sendStdin('one\n')
  await first.waitForLine('one')
  first.cut()
  const offset = first.position.stdoutOffset
  const second = await attach(t, { session, client, offset })
  const attached = await second.waitFor('attached')
  t.match(attached, { session, isNew: false, stdoutOffset: offset })
  t.equal(attached.stdinOffset, 'stty -echo; echo re""ady; cat\none\n'.length)
  t.equal(second.find('screen'), undefined)
  second.sendStdin('two\n')
  await second.waitForLine('two')
  second.cut()
  await kill(session)
  const third = await attach(t, { session, client, offset: second.position.stdoutOffset })
  t.match(await third.waitFor('exit'), { status: 'killed' })
  await t.rejects(connect({ session, client: 'other', offset: 0 }), /status 404/)
})

t.test('two clients that create a session with the same name share it', async (t) => {
  const clients = await Promise.all([1, 2, 3, 4].map(() => attach(t, { session: 'shared' })))
  const attached = await Promise.all(clients.map((client) => client.waitFor('attached')))
  t.equal(attached.filter(({ isNew }) => isNew).length, 1)
  t.match(await listSessions(), [{ session: 'shared', clients: 4 }])
  clients[0]?.sendStdin('echo sh""ared\n')
  for (const client of clients) await client.waitForLine('shared')
  await kill('shared')
})

t.test('create=never attaches to the newest session', async (t) => {
  for (const session of ['old', 'new']) await boxRequest('POST', '/terminal/sessions', { session })
  const client = await attach(t, { create: 'never' })
  t.equal(await sessionOf(client), 'new')
  t.match(await client.waitFor('screen'), { cols: 80, rows: 24 })
  for (const session of ['old', 'new']) await kill(session)
})

t.test(
  'a client that was cut before its first screen gets the screen and the exit of the program',
  async (t) => {
    const command = 'echo printed; read -r line; exit 7'
    await boxRequest('POST', '/terminal/sessions', { session: 'cut', command })
    const query = { session: 'cut', client: 'before-its-screen', create: 'never' }
    const first = await connect(query)
    await first.waitFor('attached')
    first.cut()
    const other = await attach(t, { session: 'cut', create: 'never' })
    await other.waitForLine('printed')
    other.sendStdin('\n')
    await other.waitFor('exit')
    await waitUntil('the session has exited', async () => (await listSessions()).length === 0)
    const again = await attach(t, query)
    await again.waitForLine('printed')
    t.match(await again.waitFor('exit'), { exitCode: 7 })
    await t.rejects(connect({ ...query, client: 'another-client' }), /status 404/)
  },
)

t.test('refusals', async (t) => {
  const refusal = async (query: Query, headers: Record<string, string> = HEADERS) => {
    const error = await connect(query, headers).then(
      () => t.fail(`${JSON.stringify(query)} was accepted`),
      (error: unknown) => error,
    )
    if (!(error instanceof RefusedError)) throw error
    return { status: error.status, code: JSON.parse(error.text).error.code }
  }
  const invalid = { status: 400, code: 'invalid_request' }
  const notFound = { status: 404, code: 'not_found' }
  t.same(await refusal({}, {}), { status: 401, code: 'unauthorized' })
  t.same(await refusal({ create: 'never' }), notFound)
  t.same(await refusal({ session: 'missing', create: 'never' }), notFound)
  t.same(await refusal({ session: 'missing', client: 'a', offset: 5 }), notFound)
  for (const query of [
    { session: '../x' },
    { session: 'x'.repeat(65) },
    { create: 'yes' },
    { client: 'a b' },
    { offset: -1 },
    { cols: 0 },
    { rows: 1001 },
    { term: 'a b' },
  ])
    t.same(await refusal(query), invalid, JSON.stringify(query))
  const readOnly = await createLimitedKey(coordinator, { access: { boxes: 'read' } })
  const denied = { status: 403, code: 'key_access_denied' }
  t.same(await refusal({}, { authorization: `Bearer ${readOnly}` }), denied)
  const missingBox = connectAttachClient(`${url}/v1/box/nosuch/terminal`, HEADERS)
  await t.rejects(missingBox, /status 404/)
  t.match(await edge(box.hostname, 'GET', '/terminal'), { status: 400 })
  t.equal((await edge(box.hostname, 'POST', '/terminal')).status, 405)

  const start = async (body: object) => {
    const { status, json } = await boxRequest('POST', '/terminal/sessions', body)
    return { status, code: json.error?.code }
  }
  for (const body of [
    { session: '-x' },
    { command: '' },
    { cols: 1001 },
    { rows: '24' },
    { term: '' },
    { env: { 'A-B': 'x' } },
    { cwd: 'a\nb' },
  ])
    t.same(await start(body), invalid, JSON.stringify(body))
  t.same(await start({ cwd: 'missing' }), notFound)
  t.same(await start({ cwd: '/etc/passwd' }), { status: 400, code: 'invalid_path' })
  t.same(await start({ session: 'taken' }), { status: 200, code: undefined })
  t.same(await start({ session: 'taken' }), invalid)
  await kill('taken')
  t.equal((await kill('taken')).status, 200, 'as the first time')
  t.equal((await kill('-x')).status, 404)
  t.equal((await boxRequest('GET', '/terminal/sessions', undefined, { key: readOnly })).status, 200)
  t.equal((await boxRequest('DELETE', '/terminal/sessions/x', undefined, { key: readOnly })).status, 403)
  t.equal((await boxRequest('POST', '/terminal/sessions', {}, { key: readOnly })).status, 403)
  t.same(await listSessions(), [])
})

t.test('attached terminals have their own limit', async (t) => {
  const clients = await Promise.all(Array.from({ length: 12 }, () => attach(t, { session: 'many' })))
  await t.rejects(connect({ session: 'many' }), /status 429: .*12 attached connections/)
  t.equal((await listSessions())[0]?.clients, 12)
  clients[0]?.cut()
  const next = await waitUntil('a slot is free', () => attach(t, { session: 'many' }).catch(() => undefined))
  await next.waitFor('attached')
  await kill('many')
})

t.test('a hostile client', async (t) => {
  const attacks: [string, (client: AttachClient) => void][] = [
    ['text that is not JSON', (client) => client.ws.send('{')],
    ['a size out of bounds', (client) => client.ws.send('{"type":"resize","cols":1000000,"rows":1}')],
    ['an unknown channel', (client) => client.ws.send(Buffer.from([1, 1]))],
    [
      'an ack of output that was not sent',
      (client) => client.send({ type: 'ack', stdoutOffset: 1e12, stderrOffset: 0 }),
    ],
    ['a chunk that is too large', (client) => client.ws.send(Buffer.alloc(70_000))],
    [
      'more input than the program reads',
      (client) => {
        for (let i = 0; i < 40; i++) client.sendStdin(Buffer.alloc(65_536, 'x'))
      },
    ],
  ]
  await boxRequest('POST', '/terminal/sessions', {
    session: 'target',
    command: 'stty raw -echo; echo ready; sleep 600',
  })
  for (const [name, attack] of attacks) {
    const client = await attach(t, { session: 'target' })
    await client.waitForLine('ready')
    attack(client)
    const code = await client.closed
    t.ok(client.find('error') !== undefined || code === 1009, `${name}: closed with ${code}`)
  }
  const next = await attach(t, { session: 'target' })
  await next.waitForLine('ready')
  t.equal((await kill('target')).status, 200)
  t.match(await next.waitFor('exit'), { status: 'killed' })
})

t.test('a client that never reads does not stop others', async (t) => {
  await boxRequest('POST', '/terminal/sessions', { session: 'flood', command: 'yes' })
  const silent = await connect({ session: 'flood' })
  t.teardown(() => silent.cut())
  silent.ws.pause()
  const reader = await attach(t, { session: 'flood' })
  await waitUntil('output arrives', () => reader.position.stdoutOffset > 8 * 1024 * 1024)
  reader.sendStdin('\x03')
  t.match(await reader.waitFor('exit'), { status: 'killed', signal: 'INT' })
})

t.test('create=auto wakes a suspended box, other requests do not', async (t) => {
  await boxRequest('POST', '/terminal/sessions', { session: 'lost' })
  await api('POST', `/boxes/${box.id}/suspend`)
  await coordinator.waitForState(box.id, 'suspended')
  for (const query of [{ create: 'never' }, { session: 'lost', client: 'a', offset: 1 }] as Record<
    string,
    string | number
  >[])
    await t.rejects(connect(query), /status 409: .*box_not_running/)
  t.equal((await boxRequest('GET', '/terminal/sessions')).status, 409)
  const client = await attach(t, { session: 'fresh' })
  t.match(await client.waitFor('attached'), { session: 'fresh', isNew: true })
  t.match(await listSessions(), [{ session: 'fresh' }])
})
