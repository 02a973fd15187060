// Rendering of stream frames: whatever the output bytes are, the parsed event has the same content.
import t, { type Test } from 'tap'
import { renderEvent, renderFrame } from '../../../coordinator/edge/server-sent-events.ts'

const position = { stdoutOffset: 1_000_000, stderrOffset: 7 }

/** Parses the one event of `text`. */
function parseEvent(t: Test, text: string, name: string): unknown {
  const [first, id, data = '', ...rest] = text.split('\n')
  t.same([first, id, rest], [`event: ${name}`, 'id: 1000000:7', ['', '']])
  t.ok(data.startsWith('data: {'))
  return JSON.parse(data.slice('data: '.length))
}

const outputs: Record<string, Buffer> = {
  'a plain line': Buffer.from('hello, world\n'),
  'quotes, backslashes and control characters': Buffer.from('"a" \\ \t \r\n \b\f / \u007f'),
  'an escape sequence': Buffer.from('\u001b[31mred\u001b[0m\n'),
  'a NUL byte': Buffer.from('a\0b'),
  'non-ASCII text': Buffer.from('Größe: 🦀\n'),
  'invalid UTF-8': Buffer.from([0x61, 0xff, 0xc3, 0x0a]),
  'JavaScript line separators': Buffer.from('a\u2028b\u2029c'),
  'a full chunk': Buffer.alloc(48 * 1024, 'line\n'),
  ...Object.fromEntries(Array.from({ length: 256 }, (_, byte) => [`byte ${byte}`, Buffer.of(0x61, byte)])),
}

t.test('output is rendered exactly, in both encodings', async (t) => {
  for (const [name, bytes] of Object.entries(outputs)) {
    const offsets = { offset: 1_000_000 - bytes.length, nextOffset: 1_000_000 }
    for (const encoding of ['utf8', 'base64'] as const) {
      const text = renderFrame({ event: 'stdout', ...position, bytes }, { encoding })
      const expected = { data: bytes.toString(encoding), ...offsets }
      t.same(parseEvent(t, text, 'stdout'), expected, `${name} as ${encoding}`)
    }
  }
})

t.test('control events have the fields of the spec and no others', async (t) => {
  const render = (frame: Parameters<typeof renderFrame>[0]) =>
    parseEvent(t, renderFrame(frame, { encoding: 'utf8' }), frame.event)
  const exit = { status: 'killed', exitCode: null, signal: 'TERM', timedOut: true } as const
  const processId = 'p_0123456789abcdef01234567'
  t.same(render({ event: 'attached', ...position, processId }), { processId, ...position })
  t.same(render({ event: 'heartbeat', ...position }), {})
  t.same(render({ event: 'reconnect', ...position }), position)
  t.same(render({ event: 'exit', ...position, ...exit }), { ...exit, ...position })
  const error = { code: 'not_found', message: 'deleted' }
  t.same(render({ event: 'error', ...position, ...error }), error)
})

t.test('the id is the position after the event, for offsets of any size', async (t) => {
  for (const offset of [1, 99, 65_535, 2 ** 32, 10 ** 15 - 1])
    t.equal(
      renderEvent('heartbeat', { stdout: offset - 1, stderr: offset }, {}),
      `event: heartbeat\nid: ${offset - 1}:${offset}\ndata: {}\n\n`,
    )
})

t.test('times are sent to clients that requested them only', async (t) => {
  const bytes = Buffer.from('a')
  const render = (
    frame: Parameters<typeof renderFrame>[0],
    options: Partial<Parameters<typeof renderFrame>[1]>,
  ) => parseEvent(t, renderFrame(frame, { encoding: 'utf8', ...options }), frame.event)
  const output = { event: 'stdout', ...position, at: Date.UTC(2026, 0, 2, 3, 4, 5, 60), bytes } as const
  t.match(render(output, { timestamps: true }), { at: '2026-01-02T03:04:05.060Z' })
  t.match(render({ ...output, at: null }, { timestamps: true }), { at: null })
  const { at: _, ...fromOldAgent } = output
  t.match(render(fromOldAgent, { timestamps: true }), { at: null })
  t.notOk(Object.hasOwn(render(output, {}) as object, 'at'))
  const attached = { event: 'attached', ...position, processId: 'p', hasTimes: true } as const
  t.match(render(attached, { hasTimes: true }), { hasTimes: true })
  t.notOk(Object.hasOwn(render(attached, {}) as object, 'hasTimes'))
})
