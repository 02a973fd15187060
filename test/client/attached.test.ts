// Attached commands and terminals of programs: each byte once over lost connections, and errors of refused ones.
import { createHash } from 'node:crypto'
import t from 'tap'
import {
  AuthenticationError,
  Boxwood,
  ConflictError,
  ConnectionError,
  NotFoundError,
  type Terminal,
  type TerminalOutput,
  type Transport,
} from '../../client/exports.ts'
import { fetchTransport } from '../../client/http/fetch-transport.ts'
import { createRandom } from '../cli/random.ts'
import { startProxiedCoordinator } from '../support/proxied-coordinator.ts'

const { clientProxy, agentProxy, box: first, key, restart } = await startProxiedCoordinator(t)
const boxwood = new Boxwood({ url: clientProxy.url, apiKey: key })
const box = await boxwood.boxes.get(first.hostname)

const hash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

t.test(
  'standard input and output are exact while the coordinator is killed and connections are cut',
  async (t) => {
    const input = createRandom(1).bytes(24 * 1024 * 1024)
    const process = await box.start('tee copy; sha256sum copy >&2; exit 7', { stdin: true })
    const write = async () => {
      for (let start = 0; start < input.length; start += 3_000_000)
        t.ok(await process.write(input.subarray(start, start + 3_000_000)))
      process.end()
    }
    const written = write()
    const chunks = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
    let [received, faults] = [0, 0]
    const output = process.output()
    for (;;) {
      const next = await output.next()
      if (next.done) {
        t.match(next.value, { status: 'exited', exitCode: 7, stdoutOffset: input.length })
        break
      }
      const { stream, bytes, offset, missing } = next.value
      if (missing !== 0 || (stream === 'stdout' && offset !== received)) t.fail(`${stream} at ${offset}`)
      chunks[stream].push(bytes)
      if (stream === 'stdout') received += bytes.length
      if (received > (faults + 1) * (input.length / 4) && faults < 3) {
        faults += 1
        if (faults === 2) agentProxy.reset()
        else await restart('SIGKILL')
      }
    }
    await written
    t.equal(faults, 3)
    t.equal(hash(Buffer.concat(chunks.stdout)), hash(input))
    t.match(Buffer.concat(chunks.stderr).toString(), hash(input))
    t.match(await process.wait(), { exitCode: 7 })
  },
)

t.test('what is written before the end is sent before it, and nothing after it', async (t) => {
  const process = await box.start('wc -c', { stdin: true })
  // Longer than the window.
  const written = process.write('x'.repeat(5_000_000))
  process.end()
  t.equal(await process.write('late'), false)
  let text = ''
  for await (const { bytes } of process.output()) text += Buffer.from(bytes)
  t.equal(await written, true)
  t.equal(text, '5000000\n')
})

t.test('a command that reads no more, one that nothing reads, and one that is left', async (t) => {
  const closed = await box.start('exec 0<&-; sleep 1; exit 4', { stdin: true })
  const unread = await box.start('seq 1 2000000; exit 5', { stdin: true })
  t.match(await unread.wait(), { exitCode: 5 })
  t.match(await closed.wait(), { exitCode: 4 })
  t.equal(await closed.write('late'), false)

  const left = await box.start('read line; echo "got $line"; exec sleep 600', { stdin: true })
  await left.write('a line\n')
  for await (const { bytes } of left.output()) if (Buffer.from(bytes).includes('got a line')) break
  await left.detach()
  t.equal(await left.wait(), null)
  const process = box.process(left.id)
  t.match(await process.status(), { running: true })
  await process.kill()
})

t.test('another program attaches to a command by its id', async (t) => {
  const started = await box.start('cat', { stdin: true })
  await started.write('one ')
  const reader = started.output()
  await reader.next()
  const other = box.process(started.id).attach({ from: { stdout: 4 } })
  await other.whenAttached
  await other.write('two')
  other.end()
  let text = ''
  for await (const { bytes } of other.output()) text += Buffer.from(bytes)
  t.equal(text, 'two')
  t.match(await other.wait(), { exitCode: 0 })
  await t.rejects(started.wait(), { code: 'invalid_request' }, 'the newer connection replaces the older one')
})

/** Reads until the text is shown, and returns what was shown. */
async function readUntil(output: AsyncGenerator<TerminalOutput, unknown>, text: string): Promise<string> {
  let shown = ''
  while (!shown.includes(text)) {
    const { value, done } = await output.next()
    if (done) throw new Error(`the session ended after ${JSON.stringify(shown)}`)
    const item = value as TerminalOutput
    if (item.type === 'screen') shown = Buffer.from(item.bytes).toString()
    else if (item.type === 'output') shown += Buffer.from(item.bytes)
  }
  return shown
}

t.test('a terminal: write, read, resize, lost connections, detach, resume', async (t) => {
  const terminal: Terminal = await box.terminals.open({
    session: 'work',
    command: 'stty -echo; cat; exit 3',
    cols: 90,
    rows: 20,
  })
  const output = terminal.output()
  await terminal.write('first\n')
  await readUntil(output, 'first')
  const [session] = (await box.terminals.list()).sessions
  t.match(session, { session: 'work', cols: 90, rows: 20, clients: 1 })
  terminal.resize({ cols: 100, rows: 30 })
  for (;;) {
    const { value } = await output.next()
    if ((value as TerminalOutput).type === 'resized') break
  }
  clientProxy.reset()
  await terminal.write('second\n')
  agentProxy.reset()
  await terminal.write('third\n')
  t.equal((await readUntil(output, 'third')).match(/second/g)?.length, 1)
  await restart('SIGKILL')
  await terminal.write('fourth\n')
  await readUntil(output, 'fourth')
  await output.return(null)
  await terminal.detach()
  const { client, offset } = terminal

  const seen = await box.terminals.attach('work')
  t.match(await readUntil(seen.output(), 'fourth'), /first[\s\S]*second/, 'the screen')
  await seen.detach()

  const resumed = await box.terminals.attach('work', { client, ...(offset !== null && { from: offset }) })
  await resumed.write('fifth\n')
  const rest = resumed.output()
  t.notMatch(await readUntil(rest, 'fifth'), 'fourth')
  await resumed.write('\u0004')
  for (;;) {
    const { value, done } = await rest.next()
    if (!done) continue
    t.match(value, { status: 'exited', exitCode: 3 })
    break
  }
  await t.rejects(box.terminals.attach('work', { client: 'another' }), NotFoundError)
})

t.test('a session is closed', async (t) => {
  const terminal = await box.terminals.open({ command: 'exec sleep 600' })
  await box.terminals.close(terminal.session)
  t.match(await terminal.wait(), { status: 'killed', signal: 'HUP' })
})

t.test('refused connections', async (t) => {
  const id = `p_${'0'.repeat(24)}`
  await t.rejects(box.process(id).attach().wait(), NotFoundError)
  await t.rejects(box.terminals.attach('nothing'), { name: 'NotFoundError', code: 'not_found' })
  const started = await box.start('cat', { stdin: true })
  const headers: Record<string, string> = {}
  const other = new Boxwood({
    url: clientProxy.url,
    apiKey: key,
    transport: {
      send: (request) => fetchTransport.send({ ...request, headers: { ...request.headers, ...headers } }),
      connect: (request, socketHandlers) => {
        Object.assign(request.headers, headers)
        return (fetchTransport.connect as NonNullable<Transport['connect']>)(request, socketHandlers)
      },
    },
  })
  const sameBox = await other.boxes.get(box.id)
  headers.authorization = 'Bearer dcp_revoked'
  await t.rejects(sameBox.process(started.id).attach().wait(), AuthenticationError)
  await t.rejects(sameBox.terminals.attach('nothing'), AuthenticationError)
  const handlers = { onMessage: () => undefined, onClose: () => undefined }
  await t.rejects(other.routes.processes.attach(box.id, started.id, handlers), AuthenticationError)
  await t.rejects(boxwood.routes.processes.attach(box.id, id, handlers), ConnectionError)

  const controller = new AbortController()
  const attached = box.process(started.id).attach({ signal: controller.signal })
  await attached.whenAttached
  controller.abort(new Error('enough'))
  await t.rejects(attached.wait(), { message: 'enough' })
  await started.kill()

  const suspended = await box.start('cat', { stdin: true })
  await box.suspend()
  await t.rejects(suspended.wait(), ConflictError)
  await t.rejects(box.terminals.attach('nothing'), ConflictError)
})
