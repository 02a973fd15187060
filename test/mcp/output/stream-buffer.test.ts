// The parts of a stream for an answer, and their sizes when the box has discarded bytes.
import t from 'tap'
import { StreamBuffer } from '../../../mcp/output/stream-buffer.ts'

const BUDGET = 10_000
const keep = (text: string): string => text
const bytes = (text: string) => new Uint8Array(Buffer.from(text))

/** Lines of ten bytes with their offsets, from one offset to another. */
const lines = (from: number, to: number): string =>
  Array.from({ length: (to - from) / 10 }, (_, i) => `${String(from + i * 10).padStart(9, '0')}\n`).join('')

/** The offset at which the excerpt continues, which its next line names. */
function findContinuation(text: string): number {
  const [, rest = ''] = /bytes are not shown, from offset \d+ on\]\n(\d+)/.exec(text) ?? []
  return Number(rest)
}

t.test('a text that fits is whole', (t) => {
  const buffer = new StreamBuffer(0)
  buffer.add(bytes('a\n'), 0)
  buffer.add(bytes('b\n'), 0)
  t.same(buffer.getExcerpt(BUDGET, keep), { text: 'a\nb\n', omitted: null })
  t.same(buffer.getPage(BUDGET, keep), { text: 'a\nb\n', nextOffset: 4 })
  t.end()
})

t.test('the omitted bytes are those between the parts', (t) => {
  for (const size of [20_000, 100_000, 1_000_000]) {
    const buffer = new StreamBuffer(0)
    for (let from = 0; from < size; from += 10_000) buffer.add(bytes(lines(from, from + 10_000)), 0)
    const { text, omitted } = buffer.getExcerpt(BUDGET, keep)
    const { offset = 0, bytes: count = 0 } = omitted ?? {}
    t.ok(text.startsWith(lines(0, offset)), `${size}`)
    t.equal(findContinuation(text), offset + count)
    t.ok(text.endsWith(lines(offset + count, size)))
  }
  t.end()
})

t.test('bytes that were discarded before the first read', (t) => {
  for (const size of [1_000, 90_000, 1_000_000]) {
    const buffer = new StreamBuffer(100)
    const from = 1_000_000
    buffer.add(bytes(lines(from, from + size)), from - 100)
    const { text, omitted } = buffer.getExcerpt(BUDGET, keep)
    t.equal(omitted?.offset, 100)
    t.equal(findContinuation(text), 100 + (omitted?.bytes ?? 0), `${size}`)
    t.ok(text.endsWith(lines(from + size - 1_000, from + size)))
    const page = buffer.getPage(BUDGET, keep)
    t.ok(page.text.startsWith(lines(from, from + 1_000)))
    t.equal(page.nextOffset, from + page.text.length)
  }
  t.end()
})

t.test('bytes that were discarded between two reads', (t) => {
  const buffer = new StreamBuffer(0)
  buffer.add(bytes(lines(0, 30_000)), 0)
  buffer.add(bytes(lines(1_000_000, 1_001_000)), 970_000)
  const { text, omitted } = buffer.getExcerpt(BUDGET, keep)
  const { offset = 0, bytes: count = 0 } = omitted ?? {}
  t.ok(text.startsWith(lines(0, offset)))
  t.equal(offset + count, 1_000_000)
  t.ok(text.endsWith(lines(1_000_000, 1_001_000)))
  // A page ends before the gap.
  const page = buffer.getPage(BUDGET, keep)
  t.equal(page.nextOffset, page.text.length)
  const rest = new StreamBuffer(30_000)
  rest.add(bytes(lines(1_000_000, 1_001_000)), 970_000)
  t.equal(rest.missing, 970_000)
  t.same(rest.getPage(BUDGET, keep), { text: lines(1_000_000, 1_001_000), nextOffset: 1_001_000 })
  t.end()
})
