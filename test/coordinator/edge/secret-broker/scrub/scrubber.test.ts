// Masking of values: all encodings, at all chunk boundaries, at equal length, and without a delay of other bytes.
import { once } from 'node:events'
import fc from 'fast-check'
import t from 'tap'
import {
  encodePathSegment,
  listSentTexts,
} from '../../../../../coordinator/edge/secret-broker/encode-value.ts'
import { Matcher, type Range, START } from '../../../../../coordinator/edge/secret-broker/scrub/matcher.ts'
import { createNeedles } from '../../../../../coordinator/edge/secret-broker/scrub/needles.ts'
import { WebSocketScrubStream } from '../../../../../coordinator/edge/secret-broker/scrub/scrub-websocket.ts'
import { Scrubber, scrubText } from '../../../../../coordinator/edge/secret-broker/scrub/scrubber.ts'

const VALUE = 'sk-t/est+"1é&<2>~\\x'
const createMatcher = (value = VALUE) => new Matcher(createNeedles([value], 64 * 1024) ?? [])

function scrub(matcher: Matcher | readonly Matcher[], chunks: readonly Buffer[]): string {
  const scrubber = new Scrubber([matcher].flat())
  const parts = chunks.map((chunk) => Buffer.from(scrubber.push(Buffer.from(chunk))))
  return Buffer.concat([...parts, scrubber.flush()]).toString('latin1')
}

/** Encodings, and the number of characters at their edges that do not depend on the value alone. */
const ENCODINGS: Record<string, (value: string) => string> = {
  raw: (value) => value,
  JSON: (value) => JSON.stringify(value).slice(1, -1),
  'JSON of PHP': (value) =>
    JSON.stringify(value).slice(1, -1).replaceAll('/', '\\/').replaceAll('é', '\\u00e9'),
  'JSON of Python': (value) => JSON.stringify(value).slice(1, -1).replaceAll('é', '\\u00e9'),
  'JSON of Go': (value) =>
    JSON.stringify(value)
      .slice(1, -1)
      .replace(/[&<>]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`),
  percent: encodeURIComponent,
  'percent, lowercase': (value) => encodeURIComponent(value).replace(/%../g, (byte) => byte.toLowerCase()),
  form: (value) => new URLSearchParams({ v: value }).toString().slice(2),
  hex: (value) => Buffer.from(value).toString('hex'),
  'hex, uppercase': (value) => Buffer.from(value).toString('hex').toUpperCase(),
  ...Object.fromEntries(
    ['', 'u', 'us', 'user:'].flatMap((prefix) =>
      (['base64', 'base64url'] as const).map((encoding) => [
        `${encoding} after ${prefix.length} bytes`,
        (value: string) => Buffer.from(`${prefix}${value}`).toString(encoding),
      ]),
    ),
  ),
}

t.test('each encoding of a value is masked, wherever it is split', async (t) => {
  const matcher = createMatcher()
  for (const [name, encode] of Object.entries(ENCODINGS)) {
    const echo = Buffer.from(`{"token":"${encode(VALUE)}"}\n`)
    const expected = scrub(matcher, [echo])
    t.equal(expected.length, echo.length, `${name}: the length stays`)
    t.match(expected, /^\{"token":"[^*]{0,8}\*{17,}[^*]{0,2}=*"\}\n$/, `${name}: masked`)
    for (let at = 0; at <= echo.length; at += 1)
      if (scrub(matcher, [echo.subarray(0, at), echo.subarray(at)]) !== expected)
        t.fail(`${name}: split at ${at}`)
    const bytes = [...echo].map((byte) => Buffer.from([byte]))
    t.equal(scrub(matcher, bytes), expected, `${name}: byte by byte`)
  }
})

t.test('what was sent as Basic is masked with its edges', async (t) => {
  const sent = Buffer.from(`user:${VALUE}`).toString('base64')
  const matchers = [createMatcher(), new Matcher([Buffer.from(sent)])]
  const expected = `Basic ${'*'.repeat(sent.length)} <${'*'.repeat(VALUE.length + 1)}>`
  const echo = `Basic ${sent} <${VALUE}>`
  t.equal(scrubText(matchers, Buffer.from(echo).toString('latin1')), expected)
  const bytes = [...Buffer.from(echo)].map((byte) => Buffer.from([byte]))
  t.equal(scrub(matchers, bytes), expected, 'byte by byte')
})

t.test('several values that overlap are masked as one', async (t) => {
  const matcher = new Matcher(['abcabcab', 'bcabcabcab', 'cabxxxxx'].map((text) => Buffer.from(text)))
  const data = Buffer.from('-abcabcabcabxxxxx-abcabca-')
  const expected = '-****************-abcabca-'
  for (let a = 0; a <= data.length; a += 1)
    for (let b = a; b <= data.length; b += 1) {
      const result = scrub(matcher, [data.subarray(0, a), data.subarray(a, b), data.subarray(b)])
      if (result !== expected) t.equal(result, expected, `split at ${a} and ${b}`)
    }
})

t.test('random chunks give the same as a naive search of the whole text', async () => {
  const unit = fc.constantFrom('a', 'b', 'B', '/')
  const needles = fc.array(fc.string({ unit, minLength: 1, maxLength: 9 }), { minLength: 1, maxLength: 6 })
  const chunks = fc.array(fc.string({ unit: fc.oneof(unit, fc.constant('_')), maxLength: 60 }), {
    maxLength: 6,
  })
  const normalize = (text: string) => text.toLowerCase().replaceAll('/', '_')
  fc.assert(
    fc.property(needles, chunks, fc.nat(6), (needles, chunks, count) => {
      const whole = normalize(chunks.join(''))
      const masked = [...chunks.join('')]
      for (const needle of needles.map(normalize))
        for (let at = whole.indexOf(needle); at !== -1; at = whole.indexOf(needle, at + 1))
          masked.fill('*', at, at + needle.length)
      const groups = [needles.slice(0, count), needles.slice(count)].filter(({ length }) => length > 0)
      const matchers = groups.map((group) => new Matcher(group.map((needle) => Buffer.from(needle))))
      const data = chunks.map((chunk) => Buffer.from(chunk))
      return scrub(matchers, data) === masked.join('')
    }),
    { numRuns: 3000 },
  )
})

t.test('no byte is held back longer than a value may continue', async () => {
  const unit = fc.constantFrom('a', 'b')
  const needles = fc.array(fc.string({ unit, minLength: 2, maxLength: 9 }), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(needles, fc.string({ unit, maxLength: 30 }), (needles, text) => {
      const matcher = new Matcher(needles.map((needle) => Buffer.from(needle)))
      const sent = new Scrubber([matcher]).push(Buffer.from(text)).length
      const starts = needles.flatMap((needle) => [...needle].map((_, length) => needle.slice(0, length)))
      const held = starts.filter((start) => text.endsWith(start)).map(({ length }) => length)
      return text.length - sent === Math.max(0, ...held)
    }),
    { numRuns: 2000 },
  )
})

t.test('only the start of a value is held back, so events are not delayed', async (t) => {
  const scrubber = new Scrubber([createMatcher()])
  const push = (text: string) => scrubber.push(Buffer.from(text)).toString()
  t.equal(push('data: sk-t\n\n'), 'data: sk-t\n\n')
  t.equal(push('data: sk-t'), 'data: ')
  t.equal(push('oo'), 'sk-too')
  t.equal(push('s'), '')
  t.equal(scrubber.flush().toString(), 's')
})

t.test('the forms that servers read from a header are masked', async (t) => {
  const value = ' pässwörd-123 '
  const [utf8, latin1] = [value.trim(), Buffer.from(value.trim()).toString('latin1')]
  for (const text of [
    utf8,
    latin1,
    latin1.replaceAll('Ã', '\\u00c3').replaceAll('¤', '\\u00a4').replaceAll('¶', '\\u00b6'),
  ])
    t.match(scrub(createMatcher(value), [Buffer.from(`<${text}>`)]), /^<\*+>$/, text)
})

t.test('each form of a value with several lines is masked', async (t) => {
  const value = '-----BEGIN-----\nab/c+é\n-----END-----\n'
  const lines = value.trim()
  for (const [name, form] of Object.entries({
    raw: lines,
    CRLF: lines.replaceAll('\n', '\r\n'),
    JSON: JSON.stringify(lines).slice(1, -1),
    'JSON with CRLF': JSON.stringify(lines.replaceAll('\n', '\r\n')).slice(1, -1),
    percent: encodeURIComponent(lines),
    form: new URLSearchParams({ v: lines }).toString().slice(2),
    path: encodePathSegment(lines),
  }))
    t.match(scrub(createMatcher(value), [Buffer.from(`<${form}>`)]), /^<\*+>$/, name)
  const basic = Buffer.from(`u:${value}`).toString('base64')
  t.match(scrub(createMatcher(value), [Buffer.from(basic)]), /^.{3}\*{40,}.{0,4}$/)
})

t.test('what a request has instead of the value is masked in each encoding too', async (t) => {
  const sent = listSentTexts(VALUE, ['header', 'query', 'path', 'body'])
  t.equal(sent.length, 5)
  const matcher = new Matcher(createNeedles(sent, 64 * 1024) ?? [])
  for (const text of sent)
    for (const [name, encode] of Object.entries(ENCODINGS))
      t.match(
        scrub(matcher, [Buffer.from(`<${encode(text)}>`)]),
        /^<[^*]{0,8}\*{17,}[^*]{0,2}=*>$/,
        `${name} of ${text}`,
      )
})

t.test('long values and repeated text are found as one part', async (t) => {
  const value = `${'a'.repeat(500)}${'0123456789'.repeat(30)}`
  t.equal(scrub(createMatcher(value), [Buffer.from(`<${value}>`)]), `<${'*'.repeat(value.length)}>`)
  const found: Range[] = []
  const data = Buffer.from(`-${'a'.repeat(1000)}-`)
  createMatcher('a'.repeat(8)).scan(data, { from: 0, state: START, found })
  t.same(found, [{ start: 1, end: 1001 }])
})

t.test('a WebSocket frame that may be compressed is refused', async (t) => {
  const stream = new WebSocketScrubStream([createMatcher()])
  const failed = once(stream, 'error')
  stream.resume().write(Buffer.from([0xc1, 1, 0x61]))
  t.match(await failed, [{ code: 'upstream_invalid' }])
})

t.test('short values are not masked', async (t) => {
  t.same(createNeedles(['1234567'], 1000), [])
})

t.test('the forms of values have a limit, and no more of them are created', async (t) => {
  function* listValues() {
    yield 'a'.repeat(1000)
    yield 'b'.repeat(1000)
    t.fail('the third value is used')
  }
  t.equal(createNeedles(listValues(), 2000), null)
  const ascii = createNeedles(['x-1'.repeat(5000)], 512 * 1024) ?? []
  t.ok(ascii.length <= 6, `${ascii.length} forms of a value with letters, digits and -`)
})
