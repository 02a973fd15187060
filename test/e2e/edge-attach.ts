// Attached commands over HTTP and WebSocket: live output, stdin, exit, resume, detach, limits and refusals.
import { createHash, randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { isNativeRunner } from '../agent/exec/detached/support.ts'
import { type AttachClient, connectAttachClient, RefusedError } from '../support/attach-client.ts'
import { createLimitedKey } from '../support/limited-key.ts'
import { waitUntil } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

const coordinator = sharedCoordinator
const { url, key, box, boxRequest, exec, api, edge } = coordinator
const HEADERS = { authorization: `Bearer ${key}` }

async function start(command: string, options: object = {}): Promise<string> {
  const { status, json } = await boxRequest('POST', '/exec', { command, attached: true, ...options })
  if (status !== 200) throw new Error(`POST /exec responded with ${status}: ${JSON.stringify(json)}`)
  return json.processId
}

async function attach(t: Test, processId: string, query = '', options = {}): Promise<AttachClient> {
  const client = await connectAttachClient(
    `${url}/v1/box/${box.hostname}/exec/${processId}/attach${query}`,
    HEADERS,
    options,
  )
  t.teardown(() => client.cut())
  return client
}

const run = async (t: Test, command: string, options: object = {}) => attach(t, await start(command, options))

const waitForRecord = (processId: string) =>
  waitUntil('the command is recorded as finished', async () => {
    const { json } = await api('GET', `/boxes/${box.id}/commands/${processId}`)
    return json.command?.status !== 'running' && json.command
  })

const isProcessKnown = async (processId: string) =>
  (await boxRequest('GET', `/exec/${processId}`)).status === 200

t.test('output arrives while the command runs, each stream on its own channel, then the exit', async (t) => {
  const processId = await start(
    'echo out; echo err >&2; read -r _ </dev/null; while [ ! -e go ]; do sleep 0.05; done; exit 3',
  )
  const client = await attach(t, processId)
  await waitUntil('the output arrives', () => client.stdout() === 'out\n' && client.stderr() === 'err\n')
  t.equal(client.find('exit'), undefined)
  t.match(client.messages[0], {
    type: 'attached',
    processId,
    stdinOffset: 0,
    stdoutOffset: 0,
    stderrOffset: 0,
  })
  await exec('touch go')
  t.same(await client.waitFor('exit'), {
    type: 'exit',
    ...{ status: 'exited', exitCode: 3, signal: null, timedOut: false },
    ...{ stdoutOffset: 4, stderrOffset: 4 },
  })
  client.send({ type: 'exitReceived' })
  t.equal(await client.closed, 1000)
  await waitUntil('the output is deleted', async () => !(await isProcessKnown(processId)))
  t.match(await waitForRecord(processId), {
    mode: 'sync',
    source: 'api',
    status: 'exited',
    exitCode: 3,
    stdoutBytes: 4,
  })
})

t.test('stdin is binary, ends, and is acknowledged', async (t) => {
  const client = await run(t, 'cat', { stdin: true })
  const bytes = randomBytes(300_000)
  for (let i = 0; i < bytes.length; i += 50_000) client.sendStdin(bytes.subarray(i, i + 50_000))
  client.send({ type: 'stdinEnd' })
  t.match(await client.waitFor('exit'), { exitCode: 0, stdoutOffset: 300_000 })
  const received = Buffer.concat(client.chunks.map(({ bytes }) => bytes))
  t.ok(received.equals(bytes))
  t.ok(client.messages.some((message) => message.type === 'stdin' && message.offset === 300_000))
})

t.test('without stdin the command reads an end of file, and stdin is refused', async (t) => {
  const client = await run(t, 'cat; sleep 60')
  await client.waitFor('attached')
  client.sendStdin('x')
  t.match(await client.waitFor('error'), { code: 'invalid_request' })
})

t.test('a command that closes its stdin', async (t) => {
  const client = await run(t, 'head -c 3; exec <&-; sleep 0.2; while [ ! -e go2 ]; do sleep 0.05; done', {
    stdin: true,
  })
  await client.waitFor('attached')
  client.sendStdin('abc')
  await waitUntil('head has exited', () => client.stdout() === 'abc')
  await waitUntil('the stdin is closed', () => {
    client.sendStdin('x')
    return client.find('stdinClosed')
  })
  await exec('touch go2')
  t.match(await client.waitFor('exit'), { exitCode: 0 })
})

t.test('a client resumes output and stdin after a cut', async (t) => {
  const processId = await start('cat; echo done >&2', { stdin: true })
  const first = await attach(t, processId)
  await first.waitFor('attached')
  first.sendStdin('one\n')
  await waitUntil('the echo arrives', () => first.stdout() === 'one\n')
  first.cut()
  const second = await attach(t, processId, `?stdoutOffset=${first.position.stdoutOffset}`)
  t.match(await second.waitFor('attached'), { stdinOffset: 4, stdoutOffset: 4 })
  second.sendStdin('two\n')
  second.send({ type: 'stdinEnd' })
  await second.waitFor('exit')
  t.equal(second.stdout(), 'two\n')
  t.equal(second.stderr(), 'done\n')
  second.cut()
  const third = await attach(t, processId, '?stdoutOffset=8')
  t.match(await third.waitFor('exit'), { exitCode: 0 }, 'the exit stays until it was received')
  t.equal(third.stdout(), '')
})

t.test('a newer client replaces the current one', async (t) => {
  const processId = await start('sleep 60')
  const first = await attach(t, processId)
  await first.waitFor('attached')
  const second = await attach(t, processId)
  await second.waitFor('attached')
  t.match(await first.waitFor('error'), { code: 'invalid_request', message: /Another client/ })
  t.equal((await boxRequest('DELETE', `/exec/${processId}`)).status, 200)
  t.match(await second.waitFor('exit'), { status: 'killed', signal: 'TERM' })
})

t.test('a command waits for a client that does not acknowledge, and loses nothing', async (t) => {
  const size = 40 * 1024 * 1024
  const processId = await start(`head -c ${size} /dev/zero | tr '\\0' 'x'; echo end >&2`)
  const client = await attach(t, processId, '', { autoAck: false })
  const receivedBytes = () => client.position.stdoutOffset + client.position.stderrOffset
  await waitUntil('the window is full', () => receivedBytes() === 4 * 1024 * 1024)
  // The coordinator and the agent transfer more than a window of another command in the meantime.
  const other = await run(t, `head -c ${8 * 1024 * 1024} /dev/zero`)
  t.match(await other.waitFor('exit'), { exitCode: 0, stdoutOffset: 8 * 1024 * 1024 })
  t.equal(receivedBytes(), 4 * 1024 * 1024)
  // Under the shell runner a command does not wait.
  if (isNativeRunner) t.match((await boxRequest('GET', `/exec/${processId}?tail=0`)).json, { running: true })
  client.cut()
  const hash = createHash('sha256')
  const next = await attach(t, processId)
  next.takeOutput(({ channel, bytes }) => void (channel === 1 && hash.update(bytes)))
  t.match(await next.waitFor('exit'), { exitCode: 0, stdoutOffset: size, stderrOffset: 4 })
  t.equal(hash.digest('hex'), createHash('sha256').update(Buffer.alloc(size, 'x')).digest('hex'))
  t.equal(next.find('skipped'), undefined)
})

t.test('a command without a client is terminated after the disconnect timeout', async (t) => {
  const processId = await start('sleep 600', { disconnectTimeoutSeconds: 1 })
  const client = await attach(t, processId)
  await client.waitFor('attached')
  client.cut()
  await waitUntil(
    'the command is terminated and its output deleted',
    async () => !(await isProcessKnown(processId)),
  )
  t.match(await waitForRecord(processId), { mode: 'sync', status: 'killed', signal: 'TERM' })
})

t.test('a detached command continues', async (t) => {
  const processId = await start('sleep 1.5; echo later', { disconnectTimeoutSeconds: 1 })
  const client = await attach(t, processId)
  await client.waitFor('attached')
  client.send({ type: 'detach' })
  t.equal(await client.closed, 1000)
  const status = await waitUntil('the command exits', async () => {
    const { json } = await boxRequest('GET', `/exec/${processId}`)
    return json.running === false && json
  })
  t.match(status, { exitCode: 0, stdout: 'later\n', attached: true })
  await t.rejects(attach(t, processId), /status 400: .*no attached client/)
})

t.test('the time limit', async (t) => {
  const client = await run(t, 'sleep 60', { timeoutSeconds: 1 })
  t.match(await client.waitFor('exit'), { status: 'killed', timedOut: true })
})

t.test('refusals', async (t) => {
  const processId = await start('sleep 600')
  const path = `/v1/box/${box.hostname}/exec/${processId}/attach`
  const refusal = async (requestPath: string, headers: Record<string, string> = HEADERS) => {
    const error = await connectAttachClient(url + requestPath, headers).then(
      () => t.fail(`${requestPath} was accepted`),
      (error: unknown) => error,
    )
    if (!(error instanceof RefusedError)) throw error
    return { status: error.status, code: JSON.parse(error.text).error.code }
  }
  t.same(await refusal(path, {}), { status: 401, code: 'unauthorized' })
  t.same(await refusal(`/v1/box/nosuch/exec/${processId}/attach`), { status: 404, code: 'not_found' })
  t.same(await refusal(path.replace(processId, 'p_0123456789abcdef01234567')), {
    status: 404,
    code: 'not_found',
  })
  t.same(await refusal(path.replace(processId, 'p_1')), { status: 404, code: 'not_found' })
  t.same(await refusal(`${path}?stdoutOffset=x`), { status: 400, code: 'invalid_request' })
  const readOnly = await createLimitedKey(coordinator, { access: { boxes: 'read' } })
  t.same(await refusal(path, { authorization: `Bearer ${readOnly}` }), {
    status: 403,
    code: 'key_access_denied',
  })
  const detached = await boxRequest('POST', '/exec', { command: 'sleep 600', detached: true })
  t.same(await refusal(path.replace(processId, detached.json.processId)), {
    status: 400,
    code: 'invalid_request',
  })

  const plain = await edge(box.hostname, 'GET', `/exec/${processId}/attach`)
  t.equal(plain.status, 400)
  t.equal(plain.json.error.code, 'invalid_request')
  t.equal((await fetch(url + path, { method: 'HEAD', headers: HEADERS })).status, 405)
  t.equal((await edge(box.hostname, 'POST', `/exec/${processId}/attach`)).status, 405)

  for (const body of [
    { attached: true, detached: true },
    { stdin: true },
    { disconnectTimeoutSeconds: 5 },
    { attached: true, disconnectTimeoutSeconds: 0 },
    { attached: true, stdin: 'yes' },
  ]) {
    const { status, json } = await boxRequest('POST', '/exec', { command: 'true', ...body })
    t.same([status, json.error.code], [400, 'invalid_request'], JSON.stringify(body))
  }
  const missing = await boxRequest('POST', '/exec', { command: 'true', attached: true, cwd: 'missing' })
  t.same([missing.status, missing.json.error.code], [404, 'not_found'])
  for (const id of [processId, detached.json.processId]) await boxRequest('DELETE', `/exec/${id}`)
})

t.test('more attached commands than streams and concurrent requests, up to their own limit', async (t) => {
  const clients: AttachClient[] = []
  for (let i = 0; i < 12; i++) clients.push(await run(t, 'read -r line; echo "$line"', { stdin: true }))
  await Promise.all(clients.map((client) => client.waitFor('attached')))
  const processId = await start('true')
  await t.rejects(attach(t, processId), /status 429: .*12 attached connections/)
  t.equal((await boxRequest('GET', '/exec')).status, 200, 'requests have their own limit')
  for (const [i, client] of clients.entries()) client.sendStdin(`line ${i}\n`)
  for (const [i, client] of clients.entries()) {
    await client.waitFor('exit')
    t.equal(client.stdout(), `line ${i}\n`)
    client.send({ type: 'exitReceived' })
    await client.closed
  }
  const after = await waitUntil('a slot is free', () => attach(t, processId).catch(() => undefined))
  t.match(await after.waitFor('exit'), { exitCode: 0 })
})

t.test('a hostile client', async (t) => {
  const cases: [string, (client: AttachClient) => void][] = [
    ['text that is not JSON', (client) => client.ws.send('{')],
    ['an unknown message', (client) => client.ws.send('{"type":"unknown"}')],
    ['a message of the server', (client) => client.ws.send('{"type":"exit"}')],
    ['an unknown channel', (client) => client.ws.send(Buffer.from([7, 1]))],
    ['an empty chunk', (client) => client.ws.send(Buffer.from([0]))],
    [
      'an ack of output that was not sent',
      (client) => client.send({ type: 'ack', stdoutOffset: 10, stderrOffset: 0 }),
    ],
    ['a chunk that is too large', (client) => client.ws.send(Buffer.alloc(70_000))],
    [
      'too much stdin',
      (client) => {
        for (let i = 0; i < 40; i++) client.sendStdin(Buffer.alloc(65_536))
      },
    ],
    [
      'many pings',
      (client) => {
        for (let i = 0; i < 1000; i++) client.ws.ping()
      },
    ],
  ]
  for (const [name, attack] of cases) {
    const processId = await start('sleep 600', { stdin: true })
    const client = await attach(t, processId, '', { autoAck: false })
    await client.waitFor('attached')
    attack(client)
    const code = await client.closed
    t.ok(client.find('error') !== undefined || code === 1006 || code === 1009, `${name}: closed with ${code}`)
    const next = await attach(t, processId)
    await next.waitFor('attached')
    t.pass(`${name}: the command and the box are not affected`)
    await boxRequest('DELETE', `/exec/${processId}`)
    await next.waitFor('exit')
    next.send({ type: 'exitReceived' })
  }
})
