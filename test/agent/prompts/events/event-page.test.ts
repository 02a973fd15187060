// Pages of events: their limits, the times of events, and output that is discarded while a page is read.
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { OutputTimes } from '../../../../agent/exec/detached/output-times.ts'
import type { Checkpoint } from '../../../../agent/prompts/events/checkpoints.ts'
import { LOG_START } from '../../../../agent/prompts/events/event-decoder.ts'
import { type PageSource, readEventPage } from '../../../../agent/prompts/events/event-page.ts'
import { createOutputTimeLookup } from '../../../../agent/prompts/events/output-time-lookup.ts'
import type { PromptEvent } from '../../../../shared/api/prompts.ts'
import { fakeProvider } from '../runs/support.ts'
import { createFakeProcess } from './fake-process.ts'

const { signal } = new AbortController()
const line = (fields: object) => `${JSON.stringify(fields)}\n`

/** An ended run. */
function createSource(log: string, fields: Partial<PageSource> = {}): PageSource {
  const process = createFakeProcess(Number.MAX_SAFE_INTEGER)
  process.append(log)
  return {
    output: process.output,
    times: createOutputTimeLookup(process.output),
    startedAt: 1000,
    provider: fakeProvider,
    starts: [],
    end: { offset: process.getSize(), seq: 0, isFinal: true },
    ...fields,
  }
}
async function readAll(source: PageSource, limit: number): Promise<PromptEvent[]> {
  const events: PromptEvent[] = []
  for (let after = 0; ; ) {
    const page = await readEventPage(source, { after, limit, signal })
    events.push(...page.events)
    after = page.next
    if (page.reachedEnd) return events
  }
}

t.test('pages of any size have all events', async () => {
  const anyLine = fc.record({ texts: fc.array(fc.string(), { maxLength: 4 }) })
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyLine, { maxLength: 20 }),
      fc.integer({ min: 1, max: 10 }),
      async (all, limit) => {
        const events = await readAll(createSource(all.map(line).join('')), limit)
        const texts = all.flatMap((fields) => fields.texts)
        assert.deepEqual(
          events.map(({ text }) => text),
          texts,
        )
        assert.deepEqual(
          events.map(({ seq }) => seq),
          texts.map((_, index) => index + 1),
        )
      },
    ),
  )
})

t.test('a page stops at 1 MiB and has at least one event', async (t) => {
  const source = createSource(
    [200, 200, 300, 700, 100].map((size) => line({ text: 'x'.repeat(size * 1000) })).join(''),
  )
  const sizes: number[] = []
  for (let after = 0; ; ) {
    const page = await readEventPage(source, { after, limit: 1000, signal })
    sizes.push(page.events.length)
    after = page.next
    if (page.reachedEnd) break
  }
  // Each event has the text twice: in text and in raw.
  t.same(sizes, [2, 1, 1, 1])
  const { events } = await readEventPage(createSource(line({ text: 'y'.repeat(10) }).repeat(1000)), {
    after: 0,
    limit: 1000,
    signal,
  })
  t.equal(events.length, 1000)
})

t.test('events have the time of the output, or that of the checkpoint before it', async (t) => {
  const one = line({ text: 'a' })
  const times: OutputTimes = {
    getOffsetSince: () => 0,
    limitRead: (_offset, max) => max,
    limitChunk: (offset, length) =>
      offset < 2 * one.length
        ? { length: Math.min(length, 2 * one.length - offset), at: null }
        : { length, at: 5000 },
  }
  const source = createSource(one.repeat(3))
  const checkpoint: Checkpoint = { ...LOG_START, offset: one.length, seq: 1, at: 2000 }
  const withTimes = {
    ...source,
    times: createOutputTimeLookup({ openTimes: () => times }),
    starts: [checkpoint],
  }
  const getTimes = async (after: number) =>
    (await readEventPage(withTimes, { after, limit: 10, signal })).events.map(({ at }) => Date.parse(at))
  t.same(await getTimes(0), [1000, 2000, 5000])
  t.same(await getTimes(1), [2000, 5000])
})

t.test('a reader continues at the next checkpoint when its output is discarded meanwhile', async (t) => {
  const one = line({ text: 'a'.repeat(1000) })
  const source = createSource(one.repeat(500))
  let discarded = 0
  const starts = [100, 200, 300].map((seq) => ({ ...LOG_START, offset: seq * one.length, seq, at: 1000 }))
  const output = {
    async read(from: number, max: number) {
      const chunk = await source.output.read(Math.max(from, discarded), max)
      discarded = 150 * one.length + 10
      return chunk
    },
  }
  const numbers = (await readAll({ ...source, output, starts }, 1000)).map(({ seq }) => seq)
  const first = numbers.indexOf(201)
  t.ok(first > 0 && first < 100)
  t.same(
    numbers.slice(0, first),
    numbers.slice(0, first).map((_, index) => index + 1),
  )
  t.same(
    numbers.slice(first),
    Array.from({ length: 300 }, (_, index) => 201 + index),
  )
})

t.test('a run in progress has no events beyond its end', async (t) => {
  const one = line({ text: 'a' })
  const end = { offset: 2 * one.length, seq: 2, isFinal: false }
  const source = createSource(one.repeat(5), { end })
  t.match(await readEventPage(source, { after: 0, limit: 10, signal }), {
    events: { length: 2 },
    next: 2,
    reachedEnd: true,
  })
  t.match(await readEventPage(source, { after: 2, limit: 10, signal }), { events: { length: 0 }, next: 2 })
})

t.test('stops when the client disconnects', async (t) => {
  const controller = new AbortController()
  controller.abort()
  const options = { after: 0, limit: 10, signal: controller.signal }
  const page = await readEventPage(createSource(line({ text: 'a' })), options)
  t.same(page, { events: [], next: 0, reachedEnd: false })
})
