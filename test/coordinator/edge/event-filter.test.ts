// What a box may send as a stream, and what not: a client only ever sees whole, known, well-formed events.
import t from 'tap'
import { createEventFilter } from '../../../coordinator/edge/event-filter.ts'
import { eventId, STREAM_EVENT_BYTES } from '../../../shared/api/processes.ts'

const PROCESS = 'p_0123456789abcdef01234567'
const START = { stdout: 0, stderr: 0 }
const event = (name: string, id: string, data: unknown) =>
  `event: ${name}\nid: ${id}\ndata: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
const at = (stdout: number, stderr = 0) => ({ stdoutOffset: stdout, stderrOffset: stderr })
const ATTACHED = event('attached', '0:0', { processId: PROCESS, ...at(0) })
const output = (from: number, text: string) =>
  event('stdout', `${from + text.length}:0`, { data: text, offset: from, nextOffset: from + text.length })
const EXIT = event('exit', '6:0', { status: 'exited', exitCode: 0, signal: null, ...at(6) })
const WHOLE = ATTACHED + output(0, 'abc') + event('heartbeat', '3:0', {}) + output(3, '\n\u{1f980}') + EXIT

function pushAll(chunks: readonly (string | Buffer)[]) {
  const filter = createEventFilter(PROCESS, { stdout: 7, stderr: 9 })
  const passed = chunks.flatMap((chunk) => filter.push(Buffer.from(chunk)))
  return {
    text: Buffer.concat(passed).toString(),
    lastId: eventId(filter.reached()),
    ended: filter.ended(),
    breach: filter.breach(),
  }
}
const one = (text: string | Buffer) => pushAll([text])
const begun = (text: string) => one(ATTACHED + text)

t.test('a whole stream passes as it is, in as few pieces as it came', async (t) => {
  t.same(one(WHOLE), { text: WHOLE, lastId: '6:0', ended: true, breach: null })
  t.equal(createEventFilter(PROCESS, START).push(Buffer.from(WHOLE)).length, 1)
})

t.test('wherever it is split, the same events pass, and never a part of one', async (t) => {
  const bytes = Buffer.from(WHOLE)
  for (let cut = 0; cut <= bytes.length; cut++) {
    const filter = createEventFilter(PROCESS, START)
    const first = Buffer.concat(filter.push(bytes.subarray(0, cut))).toString()
    if (first !== '' && !first.endsWith('}\n\n')) t.fail(`half an event at ${cut}`)
    const second = Buffer.concat(filter.push(bytes.subarray(cut))).toString()
    if (first + second !== WHOLE || filter.breach() !== null) t.fail(`other events when split at ${cut}`)
  }
  const single = pushAll(Array.from(bytes, (byte) => Buffer.of(byte)))
  t.same(single, { text: WHOLE, lastId: '6:0', ended: true, breach: null }, 'byte by byte')
})

t.test('its id says where the reader is, up to the largest', async (t) => {
  const largest = '9'.repeat(15)
  for (const id of ['0:0', '10:0', '0:12345678901', `${largest}:${largest}`])
    t.match(begun(event('stderr', id, { data: '' })), { lastId: id, breach: null })
})

t.test('what follows the last event does not pass, and is no breach', async (t) => {
  for (const last of [
    EXIT,
    event('reconnect', '6:0', at(6)),
    event('error', '6:0', { code: 'not_found', message: 'gone' }),
  ])
    for (const chunks of [[`${ATTACHED}${last}${output(6, 'more')}`], [ATTACHED, last, 'garbage', ATTACHED]])
      t.same(pushAll(chunks), { text: ATTACHED + last, lastId: '6:0', ended: true, breach: null })
})

t.test('what is before a breach passes, what breaks a rule and what follows does not', async (t) => {
  const good = ATTACHED + output(0, 'abc')
  for (const [what, bad] of Object.entries({
    'an unknown event': event('message', '3:0', {}),
    'an event without a name': 'id: 3:0\ndata: {}\n\n',
    'an event without an id': 'event: heartbeat\ndata: {}\n\n',
    'fields in another order': 'id: 3:0\nevent: heartbeat\ndata: {}\n\n',
    'a comment': ': hello\n\n',
    'a retry': 'retry: 1\n\n',
    'an id that is none': event('stdout', 'x', { data: '' }),
    'an id of one number': event('stdout', '3', { data: '' }),
    'an id too large': event('stdout', `${'9'.repeat(16)}:0`, { data: '' }),
    'an id whose second number is too large': event('stdout', `3:${'9'.repeat(16)}`, { data: '' }),
    'an id without its first number': event('stdout', ':0', { data: '' }),
    'an id without its second number': event('stdout', '3:', { data: '' }),
    'an id of three numbers': event('stdout', '3:0:0', { data: '' }),
    'an id with a space': event('stdout', '3: 0', { data: '' }),
    'a name that goes on': event('stdoutx', '3:0', { data: '' }),
    'an id with a minus': event('stdout', '-3:0', { data: '' }),
    'data that is no object': event('stdout', '3:0', '"text"'),
    'data on two lines': 'event: stdout\nid: 3:0\ndata: {}\ndata: {}\n\n',
    'a field after the data': 'event: stdout\nid: 3:0\ndata: {}\nid: 9:9\n\n',
    'a carriage return in the data': event('stdout', '3:0', '{"data":"a\rid: 9:9"}'),
    'a carriage return for a newline': 'event: stdout\r\nid: 3:0\r\ndata: {}\r\n\r\n',
    'an empty line': '\n',
    'a second attached': ATTACHED,
    'an exit without a status': event('exit', '3:0', { exitCode: 0, signal: null, ...at(3) }),
    'an exit that is not JSON': event('exit', '3:0', '{"status":}'),
    'a reconnect to nowhere': event('reconnect', '3:0', {}),
    'an error with a code that boxes do not have': event('error', '3:0', {
      code: 'unauthorized',
      message: '',
    }),
    'an error of 20 KB': event('error', '3:0', { code: 'exec_failed', message: 'x'.repeat(20_000) }),
    bytes: Buffer.alloc(200, 0xff).toString('latin1'),
  })) {
    const result = one(good + bad + EXIT)
    t.match(result, { text: good, lastId: '3:0', ended: false, breach: /^The box sent .*\.$/ }, what)
    const bytewise = pushAll(Array.from(Buffer.from(good + bad + EXIT), (byte) => Buffer.of(byte)))
    t.match(
      bytewise,
      { text: good, lastId: '3:0', ended: false, breach: /^The box sent/ },
      `${what}, byte by byte`,
    )
  }
})

t.test('the first event is attached, to the process that was asked for, or an error', async (t) => {
  t.match(one(output(0, 'abc')), { text: '', lastId: '7:9', breach: /order/ })
  t.match(one(EXIT), { text: '', breach: /order/ })
  t.match(one(ATTACHED.replace('p_0', 'p_1')), { text: '', breach: /wrong attached/ })
  const error = event('error', '7:9', { code: 'not_found', message: 'its log is gone' })
  t.match(one(error), { text: error, ended: true, breach: null })
})

t.test('an event of the largest size passes; a larger one is given up before it is whole', async (t) => {
  const rest = '{"data":"'.length + '"}'.length
  const largest = event('stdout', '3:0', { data: 'x'.repeat(STREAM_EVENT_BYTES - rest) })
  t.match(begun(largest + EXIT), { text: ATTACHED + largest + EXIT, breach: null })
  t.match(pushAll([ATTACHED, largest.slice(0, 100_000), largest.slice(100_000)]), {
    text: ATTACHED + largest,
    breach: null,
  })

  const filter = createEventFilter(PROCESS, START)
  filter.push(Buffer.from(`${ATTACHED}event: stdout\nid: 3:0\ndata: {"data":"`))
  const chunk = Buffer.alloc(1000, 'x')
  let sent = 0
  while (filter.breach() === null && sent < 10 * STREAM_EVENT_BYTES) {
    t.equal(filter.push(chunk).length, 0)
    sent += chunk.length
  }
  t.match(filter.breach(), /more than \d+ bytes/)
  t.ok(sent < STREAM_EVENT_BYTES + 2000, `after ${sent} bytes`)
  t.match(begun(event('stdout', '3:0', { data: 'x'.repeat(2 * STREAM_EVENT_BYTES) })), {
    text: ATTACHED,
    breach: /more than/,
  })
})
