// Between a box's stream and a client: whatever happens to either, the other one is told or freed.
import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import t, { type Test } from 'tap'
import { forwardEvents } from '../../../coordinator/edge/forward-events.ts'
import { until } from '../../support/tunnel.ts'

const PROCESS = 'p_0123456789abcdef01234567'
const event = (name: string, id: string, data: object) =>
  `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`
const at = (stdoutOffset: number, stderrOffset = 0) => ({ stdoutOffset, stderrOffset })
const ATTACHED = event('attached', '0:0', { processId: PROCESS, ...at(0) })
const OUTPUT = event('stdout', '3:0', { data: 'abc', offset: 0, nextOffset: 3 })
const EXIT = event('exit', '3:0', { status: 'exited', exitCode: 0, signal: null, ...at(3) })

function forward(t: Test, { lifeMs = 60_000, lingerMs = 10_000, heartbeatMs = 15_000, read = true } = {}) {
  const box = new PassThrough()
  const client = new PassThrough()
  const closing = new AbortController()
  t.teardown(() => {
    box.destroy()
    client.destroy()
  })
  let text = ''
  if (read)
    client.on('data', (chunk) => {
      text += chunk
    })
  const times = { lifeMs, lingerMs, heartbeatMs }
  forwardEvents(box, client, {
    processId: PROCESS,
    from: { stdout: 5, stderr: 6 },
    closing: closing.signal,
    ...times,
  })
  return {
    box,
    client,
    closing,
    received: () => text,
    ended: () => until('both have ended', () => client.readableEnded && box.destroyed).then(() => text),
  }
}

t.test('events pass until the last one; then both sides end', async (t) => {
  const { box, ended } = forward(t)
  box.end(ATTACHED + OUTPUT + EXIT)
  t.equal(await ended(), ATTACHED + OUTPUT + EXIT)
})

t.test('a box that does not end after its last event is cut off, one that goes on at once', async (t) => {
  const silent = forward(t)
  silent.box.write(ATTACHED + EXIT)
  t.equal(await silent.ended(), ATTACHED + EXIT)
  const loud = forward(t)
  loud.box.write(ATTACHED + EXIT)
  loud.box.write(OUTPUT)
  t.equal(await loud.ended(), ATTACHED + EXIT)
})

t.test(
  'a connection that is cut, or a stream without an end, is box_unreachable from the last id',
  async (t) => {
    for (const cut of [
      (box: PassThrough) => box.destroy(new Error('reset')),
      (box: PassThrough) => box.destroy(),
      (box: PassThrough) => box.end(),
      (box: PassThrough) => box.end('event: stdout\nid: 9:0\ndata: {"da'),
    ]) {
      const { box, ended, received } = forward(t)
      box.write(ATTACHED + OUTPUT)
      await until('they have passed', () => received() === ATTACHED + OUTPUT)
      cut(box)
      const [, last = ''] = (await ended()).split(ATTACHED + OUTPUT)
      t.match(last, /^event: error\nid: 3:0\ndata: \{"code":"box_unreachable","message":".*"\}\n\n$/)
    }
    const { box, ended } = forward(t)
    box.destroy()
    t.match(await ended(), /^event: error\nid: 5:6\n/, 'before any event: from where the client stood')
  },
)

t.test('a box that sends not even heartbeats is gone; one that nobody listens to is not', async (t) => {
  const silent = forward(t, { heartbeatMs: 20 })
  silent.box.write(ATTACHED + OUTPUT)
  const [, last = ''] = (await silent.ended()).split(ATTACHED + OUTPUT)
  t.match(last, /^event: error\nid: 3:0\ndata: \{"code":"box_unreachable"/)

  const unread = forward(t, { heartbeatMs: 20, read: false })
  unread.box.write(ATTACHED)
  while (!unread.box.isPaused()) {
    unread.box.write(OUTPUT.repeat(100))
    await new Promise((resolve) => setImmediate(resolve))
  }
  const other = forward(t, { heartbeatMs: 20 })
  await other.ended()
  t.notOk(unread.box.destroyed, 'as long as another was given up after')
})

t.test('a box that breaks a rule is cut off, and the client is told', async (t) => {
  const { box, ended } = forward(t)
  box.write(`${ATTACHED}${OUTPUT}garbage\n\n${EXIT}`)
  const [, last = ''] = (await ended()).split(OUTPUT)
  t.match(
    last,
    /^event: error\nid: 3:0\ndata: \{"code":"exec_failed","message":"The box sent what is no event\."\}\n\n$/,
  )
})

t.test('a coordinator that stops, and a stream that is old, ask the client to come back', async (t) => {
  const stopping = forward(t)
  stopping.box.write(ATTACHED + OUTPUT)
  await until('they have passed', () => stopping.received() === ATTACHED + OUTPUT)
  stopping.closing.abort()
  t.equal(await stopping.ended(), ATTACHED + OUTPUT + event('reconnect', '3:0', at(3)))
  const old = forward(t, { lifeMs: 1 })
  t.equal(await old.ended(), event('reconnect', '5:6', at(5, 6)))
})

t.test('a client that leaves ends the stream of the box', async (t) => {
  const { box, client } = forward(t)
  box.write(ATTACHED)
  client.destroy()
  await until('the box is told', () => box.destroyed)
})

t.test('a client that stops reading stops the box, costs no more, and goes on where it was', async (t) => {
  const { box, client, ended } = forward(t, { read: false })
  box.write(ATTACHED)
  const piece = event('stdout', '3:0', { data: 'x'.repeat(30_000), offset: 0, nextOffset: 3 })
  let sent = 0
  while (box.write(piece) && sent < 1000) {
    sent += 1
    await new Promise((resolve) => setImmediate(resolve))
  }
  t.ok(sent < 20, `the box had to stop after ${sent} events`)
  t.ok(client.writableLength + client.readableLength < 500_000)
  let received = 0
  client.on('data', (chunk) => {
    received += chunk.length
  })
  box.end(EXIT)
  await ended()
  t.equal(received, ATTACHED.length + (sent + 1) * piece.length + EXIT.length)
})

t.test('a client that does not take its last event is cut off', async (t) => {
  for (const end of [(box: PassThrough) => box.end(EXIT), (box: PassThrough) => box.destroy()]) {
    const { box, client } = forward(t, { read: false, lingerMs: 10 })
    box.write(ATTACHED + OUTPUT)
    end(box)
    await until('its connection is gone', () => client.destroyed)
  }
})

t.test('nothing is left on the signal that all streams share', async (t) => {
  const { box, closing, ended } = forward(t)
  t.equal(EventEmitter.getEventListeners(closing.signal, 'abort').length, 1)
  box.end(ATTACHED + EXIT)
  await ended()
  t.equal(EventEmitter.getEventListeners(closing.signal, 'abort').length, 0)
})
