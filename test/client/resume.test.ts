// A stream of events over several connections: what ends an outage, what ends the stream, and who decides.
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { type BoxwoodError, createError, toLostError } from '../../client/http/errors.ts'
import { createEventParser, toStreamError } from '../../client/http/events.ts'
import { type ResumeOptions, resumeEvents } from '../../client/http/resume.ts'
import type { OpenResponse } from '../../client/http/transport.ts'

type Event = { name: string; fields: Record<string, unknown> }

/** A response with this text. `isOpen`: nothing follows, and the connection stays. */
function respond(text: string, { isOpen = false, type = 'text/event-stream' } = {}) {
  const state = { isCancelled: false }
  async function* send() {
    yield new TextEncoder().encode(text)
    if (isOpen) await new Promise(() => undefined)
  }
  const response: OpenResponse = {
    status: 200,
    headers: new Headers({ 'content-type': type }),
    body: send(),
    cancel: () => {
      state.isCancelled = true
    },
  }
  return { response, state }
}

const item = (seq: number) => `event: item\ndata: {"seq":${seq}}\n\n`
const refusal = (status: number, code = 'other') => createError({ code, status, message: code })

/** Reads the connections until the event `end`. The result has what the caller got, in order. */
async function read(
  connections: (OpenResponse | Error)[],
  options: Partial<ResumeOptions<Event>> = {},
): Promise<{ items: unknown[]; notices: string[]; positions: number[]; error: BoxwoodError | null }> {
  const [items, notices, positions]: [unknown[], string[], number[]] = [[], [], []]
  let position = 0
  const events = resumeEvents<Event>({
    signal: undefined,
    outageMs: 60_000,
    async open() {
      positions.push(position)
      const next = connections.shift() ?? refusal(404, 'no_more')
      if (next instanceof Error) throw next
      return next
    },
    parse: createEventParser(['item', 'ready', 'error', 'end']),
    classify: ({ name, fields }) =>
      name === 'error' ? toStreamError(fields) : name === 'ready' ? 'alive' : 'data',
    onConnection: (error) => void notices.push(error?.code ?? 'connected'),
    ...options,
  })
  try {
    for await (const { name, fields } of events) {
      if (name === 'end') return { items, notices, positions, error: null }
      if (name === 'item') position = Number(fields.seq)
      items.push(fields.seq ?? name)
    }
  } catch (error) {
    return { items, notices, positions, error: error as BoxwoodError }
  }
  throw new Error('the events have ended')
}

t.test('resumes after the position of the caller', async (t) => {
  const result = await read([
    respond(`: comment\n\nevent: ready\ndata: {}\n\n${item(1)}${item(2)}event: item\nda`).response,
    toLostError(),
    refusal(503, 'unavailable'),
    respond(
      `event: of-tomorrow\ndata: not JSON\n\n${item(3)}event: error\ndata: {"code":"box_unreachable"}\n\n`,
    ).response,
    respond(`<h1>Restarting</h1>`, { type: 'text/html' }).response,
    respond(`${item(4)}event: end\ndata: {}\n\n`).response,
  ])
  t.same(result.items, ['ready', 1, 2, 3, 4])
  t.same(result.positions, [0, 2, 2, 2, 3, 3])
  t.same(result.notices, [
    'connected',
    'no_response',
    'no_response',
    'unavailable',
    'connected',
    'box_unreachable',
    'invalid_response',
    'connected',
  ])
})

t.test('an error after which no connection helps ends the stream, and the caller may decide', async (t) => {
  t.match(await read([refusal(403, 'forbidden')]), { error: { code: 'forbidden' }, notices: [] })
  t.match(await read([respond('<h1>Welcome</h1>', { type: 'text/html' }).response]), {
    error: { code: 'invalid_response', status: 200 },
  })
  const asked: unknown[] = []
  const result = await read([refusal(409, 'first'), respond(item(1)).response, refusal(409, 'second')], {
    async canRetry({ code }, wasConnected) {
      asked.push([code, wasConnected])
      return code !== 'second'
    },
  })
  t.match(result, { items: [1], error: { code: 'second' } })
  t.same(asked, [
    ['first', false],
    ['no_response', true],
    ['second', true],
  ])
})

t.test('what is no JSON, and an event without an end, are not read again', async (t) => {
  t.match(await read([respond(`${item(1)}event: item\ndata: {"seq"\n\n`).response]), {
    items: [1],
    error: { code: 'invalid_response' },
  })
  t.match(await read([respond(`event: item\ndata: ${'x'.repeat(5_000_000)}`).response]), {
    error: { code: 'invalid_response' },
  })
})

t.test('the outage ends with data, and without it the first error after its time is thrown', async (t) => {
  const greeting = () => respond('event: ready\ndata: {}\n\n').response
  const { items, error } = await read(Array.from({ length: 100 }, greeting), { outageMs: 1 })
  t.ok(items.length > 0 && items.length < 100, `${items.length} connections`)
  t.match(error, { code: 'no_response' })
  const late = createError({ code: 'limited', status: 429, message: 'Later.', retryAfterMs: 3_600_000 })
  t.match(await read([late]), { error: { code: 'limited' } })
})

t.test('a silent connection is lost, and is closed', async (t) => {
  const silent = respond(item(1), { isOpen: true })
  const result = await read([silent.response, respond('event: end\ndata: {}\n\n').response], { idleMs: 50 })
  t.same(result.notices, ['connected', 'no_response', 'connected'])
  t.ok(silent.state.isCancelled)
})

t.test('a caller that stops reading closes the connection', async (t) => {
  const open = respond(item(1), { isOpen: true })
  const events = resumeEvents<Event>({
    signal: undefined,
    outageMs: 1,
    open: async () => open.response,
    parse: createEventParser(['item']),
    classify: () => 'data',
  })
  for await (const { fields } of events) {
    t.same(fields, { seq: 1 })
    break
  }
  await setImmediate()
  t.ok(open.state.isCancelled)
})
