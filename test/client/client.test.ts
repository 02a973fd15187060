// The client with a coordinator and real boxes.
import { createHash } from 'node:crypto'
import t from 'tap'
import { Boxwood, ConflictError, InvalidRequestError, NotFoundError } from '../../client/exports.ts'
import { fetchTransport } from '../../client/http/fetch-transport.ts'
import { startCoordinatorWithBox } from '../e2e/coordinator-with-box.ts'
import { boxNode } from '../support/box-node.ts'

const coordinator = await startCoordinatorWithBox(t)
const boxwood = new Boxwood({ url: coordinator.url, apiKey: coordinator.key })
const box = await boxwood.boxes.get(coordinator.box.hostname)

t.test('a box is found by its name, its id and the start of its id', async (t) => {
  t.equal((await boxwood.boxes.get(box.id)).name, box.name)
  t.equal((await boxwood.boxes.get(box.id.slice(0, 12))).name, box.name)
  await t.rejects(boxwood.boxes.get('nothing'), { name: 'NotFoundError', code: 'no_such_box', status: 404 })
  const names = []
  for await (const { name } of boxwood.boxes.list()) names.push(name)
  t.same(names, [box.name])
})

t.test('the result of a command has its exit code, signal and whole output', async (t) => {
  t.match(await box.exec('echo out; echo err >&2; exit 3'), {
    status: 'exited',
    exitCode: 3,
    signal: null,
    timedOut: false,
    stdout: 'out\n',
    stderr: 'err\n',
    missing: { stdout: 0, stderr: 0 },
  })
  t.match(await box.exec('kill -TERM $$'), { status: 'killed', exitCode: null, signal: 'TERM' })
  t.match(await box.exec('echo $NAME; pwd', { cwd: '/tmp', env: { NAME: 'ü' } }), { stdout: 'ü\n/tmp\n' })
  t.match(await box.exec('exec sleep 600', { timeoutMs: 1000 }), { timedOut: true, exitCode: null })
  await t.rejects(box.exec('true', { cwd: 'nowhere' }), NotFoundError)
  await t.rejects(box.exec('true', { timeoutMs: 10 }), InvalidRequestError)
})

t.test('characters that are cut between two parts of the output are whole', async (t) => {
  const parts: string[] = []
  const command = boxNode(`
    const [a, b] = [Buffer.from("x€").subarray(0, 2), Buffer.from("x€").subarray(2)]
    process.stdout.write(a, () => setTimeout(() => process.stdout.write(b), 400))`)
  const { stdout } = await box.exec(command, { onStdout: (text) => parts.push(text) })
  t.equal(stdout, 'x€')
  t.equal(parts.join(''), 'x€')
})

t.test('an aborted exec terminates the command', async (t) => {
  const controller = new AbortController()
  const reason = new Error('enough')
  const running = box.exec('echo $$; exec sleep 600', {
    signal: controller.signal,
    onStdout: () => controller.abort(reason),
  })
  await t.rejects(running, reason)
  const { processes } = await boxwood.routes.processes.list(box.id)
  t.same(
    processes.filter(({ running }) => running),
    [],
  )
})

t.test('a reader that throws closes the stream of the output', async (t) => {
  const streams: AbortSignal[] = []
  const client = new Boxwood({
    url: coordinator.url,
    apiKey: coordinator.key,
    transport: {
      ...fetchTransport,
      send(request) {
        if (request.url.includes('/stream?')) streams.push(request.signal)
        return fetchTransport.send(request)
      },
    },
  })
  const onStdout = () => {
    throw new Error('enough')
  }
  const sameBox = await client.boxes.get(box.id)
  await t.rejects(sameBox.exec('echo 1; exec sleep 600', { timeoutMs: 60_000, onStdout }), {
    message: 'enough',
  })
  t.same(
    streams.map(({ aborted }) => aborted),
    [true],
  )
})

t.test('a detached command is followed from any offset', async (t) => {
  const process = await box.start('printf 0123456789; exit 4')
  t.match(await process.wait(), { status: 'exited', exitCode: 4, stdoutOffset: 10 })
  const output = box.process(process.id).output({ from: { stdout: 6 } })
  const { value } = await output.next()
  t.match(value, { stream: 'stdout', offset: 6, missing: 0 })
  t.same(Buffer.from((value as { bytes: Uint8Array }).bytes).toString(), '6789')
  t.match(await output.next(), { done: true, value: { exitCode: 4 } })
  t.match(await process.status(), { running: false, exitCode: 4 })
  t.match(await process.kill(), { wasRunning: false })
  await t.rejects(box.process(`p_${'0'.repeat(24)}`).wait(), NotFoundError)
})

t.test('files of all kinds of content', async (t) => {
  const bytes = new Uint8Array(300_000).map((_byte, index) => index % 251)
  await box.files.makeDirectory('src')
  await box.files.makeDirectory('build/output')
  await box.files.makeDirectory('build/output')
  await box.files.write('src/text', 'ü\n', { mode: '600' })
  await box.files.write('src/bytes', bytes)
  await box.files.write('src/blob', new Blob(['blob']))
  await box.files.write('src/stream', ReadableStream.from([bytes, bytes]))
  t.equal(await box.files.read('src/text'), 'ü\n')
  t.same(await box.files.readBytes('src/bytes'), bytes)
  t.equal((await box.files.stat('src/stream')).size, 600_000)
  const names = []
  for await (const { name } of box.files.list('src')) names.push(name)
  t.same(names.sort(), ['blob', 'bytes', 'stream', 'text'])
  const hash = createHash('sha256')
  for await (const part of (await box.files.download('src/stream')) as unknown as AsyncIterable<Uint8Array>)
    hash.update(part)
  t.equal(hash.digest('hex'), createHash('sha256').update(bytes).update(bytes).digest('hex'))
  await box.files.move('src/blob', 'src/moved')
  await t.rejects(box.files.remove('src'), ConflictError)
  await box.files.remove('src', { recursive: true })
  await t.rejects(box.files.read('src/text'), { name: 'NotFoundError', status: 404 })
})

t.test('a port is shared', async (t) => {
  const { url, access } = await box.ports.share(3000)
  t.match({ url, access }, { url: /^http:/, access: 'members' })
  t.match(await box.ports.share(3001, { audience: 'anyone', expiresInMs: 600_000 }), {
    url: /boxwood_secret/,
    expiresAt: String,
  })
  await box.ports.unshare(3000)
  t.same(
    (await box.ports.list()).shares.map(({ port }) => port),
    [3001],
  )
})

t.test('the life of a box', async (t) => {
  await box.files.write('file', 'content')
  await box.update({ labels: { team: 'web' } })
  const fork = await box.fork({ name: 'copy' })
  t.equal(fork.name, 'copy')
  t.equal(await fork.files.read('file'), 'content')
  t.equal(fork.data.labels.team, 'web')
  const names = []
  for await (const { name } of boxwood.boxes.list({ labels: ['team=web'] })) names.push(name)
  t.same(names.sort(), ['copy', box.name].sort())
  await fork.suspend()
  t.match(fork.data.observedState, /^(suspended|deep_sleep)$/)
  await fork.wake()
  t.equal(fork.data.observedState, 'running')
  t.equal((await fork.snapshot({ name: 'before' })).status, 'available')
  await fork.delete()
  await t.rejects(fork.wake(), NotFoundError)
})

t.test('a temporary box is deleted at the end of its block', async (t) => {
  let id = ''
  {
    await using scratch = await boxwood.boxes.temporary({ name: 'scratch' })
    id = scratch.id
    t.equal((await scratch.exec('echo ready')).stdout, 'ready\n')
  }
  t.equal((await boxwood.routes.boxes.get(id)).box.desiredState, 'terminated')
})

t.test('a route without a method, and errors with their fields', async (t) => {
  t.match(await boxwood.request('GET', '/api/v1/boxes', { query: { live: true, label: ['team'] } }), {
    boxes: [{ id: box.id }],
  })
  await t.rejects(boxwood.request('GET', '/api/v1/later'), { name: 'NotFoundError', code: 'not_found' })
  await t.rejects(boxwood.boxes.create({ name: box.name }), { name: 'ConflictError', code: 'name_taken' })
  const stranger = new Boxwood({ url: coordinator.url, apiKey: 'dcp_wrong' })
  const error = await stranger.routes.account.get().catch((rejection: unknown) => rejection)
  t.match(error, { name: 'AuthenticationError', code: 'unauthorized', status: 401 })
  t.notMatch(JSON.stringify(error) + String((error as Error).stack), 'dcp_wrong')
})
