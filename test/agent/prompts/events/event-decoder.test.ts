// The events of a log depend only on its bytes: not on the sizes of the chunks, nor on where decoding starts.
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import {
  createEventDecoder,
  type DecodedLine,
  LOG_START,
  type LogPosition,
} from '../../../../agent/prompts/events/event-decoder.ts'
import { MAX_LINE_BYTES } from '../../../../agent/prompts/events/line-splitter.ts'
import { mapFakeLine } from '../runs/support.ts'

const provider = { mapLine: mapFakeLine }
type Event = { seq: number; type: string; text: string | null; raw: unknown }

const toEvents = (lines: Iterable<DecodedLine>): Event[] =>
  [...lines].flatMap(({ before, events }) =>
    events.map(({ type, text, raw }, index) => ({ seq: before.seq + 1 + index, type, text, raw })),
  )

/** @param sizes of the chunks, repeated */
function* decode(log: Buffer, sizes: readonly number[], start = LOG_START): Generator<DecodedLine> {
  const decoder = createEventDecoder(provider, start)
  for (let offset = start.offset, index = 0; offset < log.length; index++) {
    const end = offset + (sizes[index % sizes.length] ?? 1)
    yield* decoder.push(offset, log.subarray(offset, end))
    offset = Math.min(end, log.length)
  }
  yield* decoder.end()
}
const decodeAll = (text: string | Buffer): Event[] => toEvents(decode(Buffer.from(text), [64 * 1024]))

const anyLine = fc.oneof(
  fc.record({ text: fc.string({ unit: 'grapheme' }) }).map((line) => Buffer.from(JSON.stringify(line))),
  fc
    .record({ texts: fc.array(fc.string(), { maxLength: 3 }) })
    .map((line) => Buffer.from(JSON.stringify(line))),
  fc
    .constantFrom('{"session":"s-1"}', '{"done":true}', '{"error":"no"}', '', '  ', '[1]', 'null')
    .map((line) => Buffer.from(line)),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
)
const anyLog = fc
  .tuple(fc.array(anyLine, { maxLength: 30 }), fc.boolean())
  .map(([lines, endsWithNewline]) =>
    Buffer.concat([
      ...lines.flatMap((line, i) => (i === 0 ? [line] : [Buffer.from('\n'), line])),
      Buffer.from(endsWithNewline ? '\n' : ''),
    ]),
  )
const anySizes = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 20 })

t.test('chunks of any size give the same events', async () => {
  fc.assert(
    fc.property(anyLog, anySizes, (log, sizes) => {
      assert.deepEqual(toEvents(decode(log, sizes)), toEvents(decode(log, [Math.max(1, log.length)])))
    }),
  )
})

t.test('the numbers are 1, 2, 3, …', async () => {
  fc.assert(
    fc.property(anyLog, anySizes, (log, sizes) => {
      const numbers = toEvents(decode(log, sizes)).map(({ seq }) => seq)
      assert.deepEqual(
        numbers,
        numbers.map((_, index) => index + 1),
      )
    }),
  )
})

t.test('decoding can start before any line', async () => {
  fc.assert(
    fc.property(anyLog, anySizes, (log, sizes) => {
      const lines = [...decode(log, sizes)]
      for (const [index, { before }] of lines.entries())
        assert.deepEqual(toEvents(decode(log, sizes, before)), toEvents(lines.slice(index)))
    }),
    { numRuns: 30 },
  )
})

t.test('a line longer than the limit is omitted, in chunks of any size', async (t) => {
  const long = `{"text":"${'x'.repeat(MAX_LINE_BYTES)}"}\n`
  const limit = `${'y'.repeat(MAX_LINE_BYTES - 1)}\n`
  const log = Buffer.from(`{"text":"a"}\n${long}${limit}{"text":"b"}\n${long.trimEnd()}`)
  for (const size of [10_007, 64 * 1024, MAX_LINE_BYTES, log.length]) {
    const lines = [...decode(log, [size])]
    t.match(toEvents(lines), [
      { seq: 1, text: 'a' },
      { seq: 2, type: 'notice', text: `A line of ${long.length} bytes was omitted.`, raw: null },
      { seq: 3, type: 'notice', text: /^y+…$/ },
      { seq: 4, text: 'b' },
      { seq: 5, type: 'notice', text: `A line of ${long.length - 1} bytes was omitted.` },
    ])
    const afterLong = lines[1]?.before as LogPosition
    t.match(
      toEvents(decode(log, [size], afterLong)),
      toEvents(lines.slice(1)),
      'a start after the line has its notice',
    )
  }
})

t.test('a line that is not a JSON object is a notice with its start', async (t) => {
  const text = 'z'.repeat(20_000)
  t.match(decodeAll(`Warning: old\r\n["array"]\n"text"\n42\n{"text":\n${text}\n`), [
    { type: 'notice', text: 'Warning: old', raw: 'Warning: old' },
    { text: '["array"]' },
    { text: '"text"' },
    { text: '42' },
    { text: '{"text":' },
    { text: `${text.slice(0, 8 * 1024 - 1)}…`, raw: `${text.slice(0, 8 * 1024 - 1)}…` },
  ])
})

t.test('invalid UTF-8 becomes U+FFFD', async (t) => {
  const line = Buffer.concat([Buffer.from('{"text":"a'), Buffer.from([0xff, 0xc3]), Buffer.from('b"}\n')])
  t.match(decodeAll(line), [{ type: 'text', text: 'a\uFFFD\uFFFDb', raw: { text: 'a\uFFFD\uFFFDb' } }])
  t.match(decodeAll(Buffer.from([0xff, 0x0a])), [{ type: 'notice', text: '\uFFFD' }])
})

t.test('lines end only at \\n', async (t) => {
  const text = 'a\u2028b\u2029c\u0085d'
  t.match(decodeAll(`${JSON.stringify({ text })}\n`), [{ text }])
})

t.test('raw is on the first event of a line', async (t) => {
  const line = { texts: ['a', 'b'] }
  t.same(
    decodeAll(JSON.stringify(line)).map(({ raw }) => raw),
    [line, null],
  )
})

t.test('deeply nested JSON is a notice', async (t) => {
  const nested = (levels: number) => `{"text":"a","more":${'['.repeat(levels)}${']'.repeat(levels)}}`
  t.match(decodeAll(nested(150)), [{ type: 'text' }])
  t.match(decodeAll(nested(100_000)), [{ type: 'notice' }])
})

t.test('a provider that throws costs one notice', async (t) => {
  const failing = {
    mapLine() {
      throw new Error('unexpected')
    },
  }
  const decoder = createEventDecoder(failing, LOG_START)
  const events = toEvents(decoder.push(0, Buffer.from('{"a":1}\n')))
  t.match(events, [{ type: 'notice', text: /unexpected/, raw: { a: 1 } }])
})

t.test('discarded output is a notice, and the rest of its last line is skipped', async (t) => {
  const decoder = createEventDecoder(provider, LOG_START)
  const first = toEvents(decoder.push(0, Buffer.from('{"text":"a"}\n{"text":"partial')))
  const lines = [...decoder.push(1000, Buffer.from('rest"}\n{"text":"b"}\n'))]
  t.match(
    [...first, ...toEvents(lines)],
    [
      { seq: 1, text: 'a' },
      { seq: 2, type: 'notice', text: `${1007 - 13} bytes of output were discarded.`, raw: null },
      { seq: 3, text: 'b' },
    ],
  )
  t.match(lines[0]?.before, { offset: 1007, seq: 1, notice: /discarded/ })
})

t.test('discarded output without a later newline', async (t) => {
  const decoder = createEventDecoder(provider, LOG_START)
  const lines = [...decoder.push(500, Buffer.from('no newline')), ...decoder.end()]
  t.match(toEvents(lines), [{ seq: 1, text: '510 bytes of output were discarded.' }])
})
