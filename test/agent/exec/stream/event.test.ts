// Output as events: whatever the bytes are, what a client parses is what was printed.
import t, { type Test } from 'tap'
import { encodeEvent, encodeOutput } from '../../../../agent/exec/stream/event.ts'

const after = { stdout: 1_000_000, stderr: 7 }

/** The data of the one event that the bytes are, which has to be written as JSON.stringify does. */
function dataOf(t: Test, event: Buffer, name: string): unknown {
  const [first, id, data = '', ...rest] = event.toString('utf8').split('\n')
  t.same([first, id, rest], [`event: ${name}`, 'id: 1000000:7', ['', '']])
  t.ok(data.startsWith('data: {'))
  const parsed: unknown = JSON.parse(data.slice('data: '.length))
  t.equal(data, `data: ${JSON.stringify(parsed)}`)
  return parsed
}

const texts: Record<string, Buffer> = {
  'a plain line': Buffer.from('hello, world\n'),
  'quotes, backslashes and tabs': Buffer.from('"a" \\ \t \r\n \b\f / \u007f'),
  'an escape sequence': Buffer.from('\u001b[31mred\u001b[0m\n'),
  'a zero byte': Buffer.from('a\0b'),
  'more than ASCII': Buffer.from('Größe: 🦀\n'),
  'what is not UTF-8': Buffer.from([0x61, 0xff, 0xc3, 0x0a]),
  'what ends a line for JavaScript': Buffer.from('a\u2028b\u2029c'),
  'the longest of the short ones': Buffer.alloc(1024, 'x\n"'),
  'more than that': Buffer.alloc(1025, 'x\n"'),
  'much more': Buffer.alloc(48 * 1024, 'line\n'),
  ...Object.fromEntries(Array.from({ length: 256 }, (_, byte) => [`byte ${byte}`, Buffer.of(0x61, byte)])),
}

t.test('output is read as it was written', async (t) => {
  for (const [what, bytes] of Object.entries(texts)) {
    const offsets = { offset: 1_000_000 - bytes.length, nextOffset: 1_000_000 }
    t.same(
      dataOf(t, encodeOutput('stdout', after, bytes, 'utf8'), 'stdout'),
      { data: bytes.toString('utf8'), ...offsets },
      what,
    )
    t.same(
      dataOf(t, encodeOutput('stdout', after, bytes, 'base64'), 'stdout'),
      { data: bytes.toString('base64'), ...offsets },
      `${what}, as base64`,
    )
  }
})

t.test('offsets of any size', async (t) => {
  for (const at of [1, 9, 10, 99, 100, 65_535, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 10 ** 14, 10 ** 15 - 1])
    t.equal(
      encodeOutput('stderr', { stdout: at - 1, stderr: at }, Buffer.from('x'), 'utf8').toString(),
      `event: stderr\nid: ${at - 1}:${at}\ndata: {"data":"x","offset":${at - 1},"nextOffset":${at}}\n\n`,
    )
})

t.test('an event does not change when the bytes that it was made of do', async (t) => {
  const bytes = Buffer.from('first')
  const event = encodeOutput('stderr', { stdout: 0, stderr: 5 }, bytes, 'utf8')
  bytes.fill('x')
  t.equal(event.toString(), 'event: stderr\nid: 0:5\ndata: {"data":"first","offset":0,"nextOffset":5}\n\n')
})

t.test('the other events', async (t) => {
  t.same(dataOf(t, encodeEvent('heartbeat', after, {}), 'heartbeat'), {})
})
