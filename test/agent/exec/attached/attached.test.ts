// Attached commands on the agent: output, stdin, restarts of the agent, and the time limit without a client.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { waitUntil } from '../../../support/wait-until.ts'
import { isNativeRunner } from '../detached/support.ts'
import { openAttachedAgent } from './support.ts'

t.test('stdin, output of both streams, and the exit', async (t) => {
  const agent = await openAttachedAgent(t)
  const { processId } = await agent.start('cat; echo done >&2; exit 4', { stdin: true })
  const client = agent.connect(processId)
  client.receiveStdin('one\n')
  await waitUntil('the echo arrives', () => client.output.stdout === 'one\n')
  t.ok(agent.attachments.hasOpenStdin())
  client.receiveStdin('two\n')
  client.receive({ type: 'stdinEnd' })
  t.same(await client.waitFor('exit'), {
    type: 'exit',
    ...{ status: 'exited', exitCode: 4, signal: null, timedOut: false },
    ...{ stdoutOffset: 8, stderrOffset: 5 },
  })
  t.same(client.output, { stdout: 'one\ntwo\n', stderr: 'done\n' })
  t.notOk(agent.attachments.hasOpenStdin())
  client.receive({ type: 'exitReceived' })
  await waitUntil('the process directory is deleted', () => !existsSync(join(agent.dir, processId)))
  t.same(agent.recorded, [processId], 'after its reports were recorded')
  t.throws(() => agent.attachments.get(processId), { code: 'not_found' })
})

t.test('the limits of the logs do not delete output that the client has not received', async (t) => {
  const agent = await openAttachedAgent(t, undefined, { retention: { totalLogBytes: 0 } })
  const { processId } = await agent.start('echo kept')
  await waitUntil('the process has exited', () => agent.attachments.get(processId).process.exit !== null)
  const client = agent.connect(processId)
  await client.waitFor('exit')
  t.equal(client.output.stdout, 'kept\n')
})

t.test('without stdin the command reads an end of file', async (t) => {
  const agent = await openAttachedAgent(t)
  const { processId } = await agent.start('cat')
  const client = agent.connect(processId)
  t.match(await client.waitFor('exit'), { exitCode: 0, stdoutOffset: 0 })
})

t.test('bytes that were not written yet are dropped at a reconnect, and sent again', async (t) => {
  const agent = await openAttachedAgent(t)
  const { processId } = await agent.start('until [ -e go ]; do sleep 0.02; done; wc -c', { stdin: true })
  const first = agent.connect(processId)
  await first.waitFor('attached')
  // More than the FIFO holds: the rest stays in the queue.
  const total = 3 * 1024 * 1024
  const chunk = 'x'.repeat(65_536)
  let sent = 0
  const accepted = (client: typeof first) =>
    Math.max(0, ...client.sent.map((message) => (message.type === 'stdin' ? message.offset : 0)))
  while (sent < accepted(first) + 1024 * 1024 && sent < total) {
    first.receiveStdin(chunk)
    sent += chunk.length
    await new Promise((resolve) => setImmediate(resolve))
  }
  first.cut()
  const second = agent.connect(processId)
  const { stdinOffset } = await second.waitFor('attached')
  t.ok(stdinOffset < sent, `continues at ${stdinOffset}, after ${sent} bytes were sent`)
  await agent.start('touch go')
  for (let offset = stdinOffset; offset < total; ) {
    await waitUntil(
      'the window is open',
      () => offset < Math.max(stdinOffset, accepted(second)) + 1024 * 1024,
    )
    const bytes = chunk.slice(0, Math.min(chunk.length, total - offset))
    second.receiveStdin(bytes)
    offset += bytes.length
  }
  second.receive({ type: 'stdinEnd' })
  await second.waitFor('exit')
  t.equal(second.output.stdout.trim(), String(total))
})

t.test('an end of stdin that was not written yet is dropped at a reconnect', async (t) => {
  const agent = await openAttachedAgent(t)
  const { processId } = await agent.start('until [ -e go ]; do sleep 0.02; done; wc -c', { stdin: true })
  const first = agent.connect(processId)
  const bytes = 'x'.repeat(65_536)
  for (let i = 0; i < 16; i++) first.receiveStdin(bytes)
  first.receiveStdin(bytes)
  first.receive({ type: 'stdinEnd' })
  const second = agent.connect(processId)
  const { stdinOffset } = await second.waitFor('attached')
  for (let offset = stdinOffset; offset < 17 * bytes.length; offset += bytes.length)
    second.receiveStdin(bytes)
  second.receive({ type: 'stdinEnd' })
  await agent.start('touch go')
  await second.waitFor('exit')
  t.equal(second.output.stdout.trim(), String(17 * bytes.length))
})

t.test('a command without stdin survives a restart of the agent', async (t) => {
  const first = await openAttachedAgent(t)
  const { processId } = await first.start('echo one; until [ -e go ]; do sleep 0.02; done; echo two')
  const client = first.connect(processId)
  await waitUntil('the output arrives', () => client.output.stdout === 'one\n')
  client.cut()
  await first.stop()
  const second = await openAttachedAgent(t, first.home)
  await second.start('touch go')
  const next = second.connect(processId, { stdout: 4, stderr: 0 })
  t.match(await next.waitFor('exit'), { status: 'exited', exitCode: 0 })
  t.equal(next.output.stdout, 'two\n')
})

t.test('a command whose stdin is complete survives a restart of the agent', async (t) => {
  const first = await openAttachedAgent(t)
  const { processId } = await first.start('cat; until [ -e go ]; do sleep 0.02; done', { stdin: true })
  const client = first.connect(processId)
  client.receiveStdin('abc')
  client.receive({ type: 'stdinEnd' })
  await waitUntil('the stdin is complete', () => existsSync(join(first.dir, processId, 'stdin-end')))
  client.cut()
  await first.stop()
  const second = await openAttachedAgent(t, first.home)
  const next = second.connect(processId, { stdout: 0, stderr: 0 })
  t.match(await next.waitFor('attached'), { stdinOffset: 3 })
  t.equal(next.find('stdinClosed'), undefined)
  await second.start('touch go')
  t.match(await next.waitFor('exit'), { status: 'exited', exitCode: 0 })
  t.equal(next.output.stdout, 'abc')
})

t.test(
  'a command that still receives stdin is terminated by the next agent',
  { skip: !isNativeRunner && 'the stdin ends with the agent' },
  async (t) => {
    const first = await openAttachedAgent(t)
    const { processId } = await first.start('cat; echo complete', { stdin: true })
    const client = first.connect(processId)
    client.receiveStdin('abc')
    await waitUntil('the echo arrives', () => client.output.stdout === 'abc')
    await first.stop()
    const second = await openAttachedAgent(t, first.home)
    const next = second.connect(processId)
    await next.waitFor('stdinClosed')
    t.match(await next.waitFor('exit'), { status: 'killed', signal: 'TERM' })
    t.equal(next.output.stdout, 'abc', 'the command did not read an end of file')
  },
)

t.test('a command without a client is terminated, also after a restart of the agent', async (t) => {
  const first = await openAttachedAgent(t)
  const { processId } = await first.start('sleep 600', { disconnectTimeoutSeconds: 1 })
  await first.stop()
  const second = await openAttachedAgent(t, first.home)
  const process = second.getProcess(processId)
  await waitUntil('the command is terminated', () => process.exit?.status === 'killed')
  await waitUntil('its output is deleted', () => !existsSync(join(second.dir, processId)))
})

t.test('a detached command is not terminated, also after a restart of the agent', async (t) => {
  const first = await openAttachedAgent(t)
  const { processId } = await first.start('until [ -e go ]; do sleep 0.02; done; echo end', {
    disconnectTimeoutSeconds: 1,
    stdin: true,
  })
  const client = first.connect(processId)
  await client.waitFor('attached')
  client.receive({ type: 'detach' })
  t.ok(client.socket.signal.aborted)
  t.throws(() => first.attachments.get(processId), { code: 'invalid_request' })
  await first.stop()
  const second = await openAttachedAgent(t, first.home)
  t.throws(() => second.attachments.get(processId), { code: 'invalid_request' })
  await new Promise((resolve) => setTimeout(resolve, 1200))
  await second.start('touch go')
  t.match(await second.waitForExit(processId), { status: 'exited', exitCode: 0 })
  t.match(await second.getStatus(processId), { stdout: 'end\n', attached: true })
})

t.test('the output of an exited command stays until the client has received the exit', async (t) => {
  const agent = await openAttachedAgent(t)
  const { processId } = await agent.start('echo out; exit 2', { disconnectTimeoutSeconds: 1 })
  const first = agent.connect(processId)
  await first.waitFor('exit')
  first.cut()
  const second = agent.connect(processId, { stdout: 4, stderr: 0 })
  t.match(await second.waitFor('exit'), { exitCode: 2 })
  await new Promise((resolve) => setTimeout(resolve, 1200))
  t.ok(existsSync(join(agent.dir, processId)), 'a connected client keeps it')
  second.cut()
  await waitUntil('the output is deleted', () => !existsSync(join(agent.dir, processId)))
})
