// The events of several runs in one request, and of a queued prompt that starts.
import t from 'tap'
import { type PromptPollRequest, promptEventsSchema, promptPollSchema } from '../../../shared/api/prompts.ts'
import { ApiError } from '../../../shared/errors.ts'
import { newId } from '../../../shared/ids.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createFakeRuns } from './fake-runs.ts'
import { createPromptRequest, enqueue, openPrompts, start, type TestPrompts } from './prompts-support.ts'

const { signal } = new AbortController()
const WAIT_MS = 15_000

const poll = async ({ prompts }: TestPrompts, request: Partial<PromptPollRequest> = {}) =>
  promptPollSchema.parse(await prompts.poll({ after: {}, waitMs: 0, ...request }, signal))
const describe = ({ runs }: Awaited<ReturnType<typeof poll>>) =>
  runs.map(({ run, events, next, finished }) => [run.id, events.map(({ text }) => text), next, finished])

t.test('has the runs in progress from their first event on', async (t) => {
  const test = await openPrompts(t)
  const { prompts, fake } = test
  const first = await start(prompts)
  const second = await start(prompts, { new: true })
  fake.emit(first.id, ['a', 'b'])
  const response = await poll(test, { waitMs: WAIT_MS })
  t.same(describe(response), [
    [first.id, ['a', 'b'], 2, false],
    [second.id, [], 0, false],
  ])
  t.match(response, { active: 2, missing: [] })
  fake.emit(first.id, ['c'])
  t.same(describe(await poll(test, { after: { [first.id]: 2, [second.id]: 0 } })), [
    [first.id, ['c'], 3, false],
  ])
  t.same(describe(await poll(test, { conversation: second.conversationId })), [[second.id, [], 0, false]])
  t.same(describe(await poll(test, { after: { [first.id]: 3, [second.id]: 0 } })), [])
})

t.test('waits for an event, the end of a run, a new run, and the end of the queue', async (t) => {
  const test = await openPrompts(t, { limits: { runs: 1 } })
  const { prompts, fake } = test
  const first = await start(prompts)
  const wait = (request: Partial<PromptPollRequest>) => poll(test, { waitMs: WAIT_MS, ...request })

  const event = wait({ after: { [first.id]: 0 } })
  fake.emit(first.id, ['a'])
  t.same(describe(await event), [[first.id, ['a'], 1, false]])

  const next = await enqueue(prompts)
  const { sequence } = await poll(test)
  const end = wait({ after: { [first.id]: 1 }, sequence })
  fake.end(first.id)
  t.match(await end, {
    runs: [{ run: { id: first.id, status: 'done' }, next: 1, finished: true }],
    active: 1,
  })

  t.match(await wait({ sequence }), { runs: [{ run: { id: next.id }, finished: false }], active: 1 })
  const last = await enqueue(prompts)
  fake.end(next.id, 'failed')
  const missed = await wait({ sequence })
  t.match(missed.runs[0], { run: { id: next.id }, finished: true }, 'a run that ended between two requests')

  const removed = await openPrompts(t)
  const running = await start(removed.prompts)
  const ended = removed.prompts.poll({ after: { [running.id]: 0 }, waitMs: WAIT_MS }, signal)
  removed.fake.end(running.id)
  t.match(await ended, { active: 0, runs: [{ finished: true }] })
  await prompts.interrupt(last.id)
})

t.test('has each run that started and ended between two requests', async (t) => {
  const test = await openPrompts(t)
  const first = await start(test.prompts)
  const before = await poll(test)
  const runs = []
  for (let count = 0; count < 3; count++) {
    const { id } = await start(test.prompts, { new: true })
    test.fake.emit(id, ['x'.repeat(700_000)])
    test.fake.end(id)
    runs.push(id)
  }
  const after: Record<string, number> = { [first.id]: 0 }
  const received: string[] = []
  for (let { sequence } = before, requests = 0; received.length < 3 && requests < 10; requests++) {
    const response = await poll(test, { after, sequence })
    if (requests === 0) t.equal(response.runs.length, 3, 'also without space for their events')
    for (const { run, next, finished } of response.runs) {
      after[run.id] = next
      if (finished) received.push(run.id)
      if (finished) delete after[run.id]
    }
    sequence = response.sequence
  }
  t.same(received.toSorted(), runs.toSorted())
  t.match(await poll(test, { after, sequence: 2 ** 50 }), { runs: [] }, 'a number of an earlier box')
})

t.test('has at most 256 runs, and the others in the next response', async (t) => {
  const test = await openPrompts(t)
  const { sequence } = await poll(test)
  for (let count = 0; count < 300; count++) test.fake.addRun({}, { status: 'done' })
  const response = await poll(test, { sequence })
  t.equal(response.runs.length, 256)
  const rest = await poll(test, { sequence: response.sequence })
  t.equal(new Set([...response.runs, ...rest.runs].map(({ run }) => run.id)).size, 300)
})

t.test('a run whose output has been deleted is missing, and the others continue', async (t) => {
  const fake = createFakeRuns()
  const { readEvents } = fake.runs
  let deleted: string | undefined
  fake.runs.readEvents = (id, options) =>
    id === deleted ? Promise.reject(new ApiError('not_found')) : readEvents(id, options)
  const test = await openPrompts(t, { fake })
  const [first, second] = [await start(test.prompts), await start(test.prompts, { new: true })]
  const { sequence } = await poll(test)
  for (const { id } of [first, second]) fake.emit(id, ['a'])
  deleted = first.id
  const after = { [first.id]: 0, [second.id]: 0 }
  t.match(await poll(test, { after, sequence }), { missing: [first.id], runs: [{ run: { id: second.id } }] })
  t.match(await poll(test, { after: { [second.id]: 1 }, sequence }), { missing: [], runs: [] })
})

t.test('without runs in progress it has the newest run, once', async (t) => {
  const test = await openPrompts(t)
  t.match(await poll(test, { waitMs: WAIT_MS }), { runs: [], active: 0 })
  for (const text of ['old', 'new']) {
    const { id } = await start(test.prompts)
    test.fake.emit(id, [text])
    test.fake.end(id)
  }
  const response = await poll(test)
  t.match(response, { runs: [{ events: [{ text: 'new' }], finished: true }], active: 0 })
  const { sequence } = response
  t.match(await poll(test, { sequence, waitMs: WAIT_MS }), { runs: [], active: 0 })
})

t.test('reports deleted runs and unknown conversations', async (t) => {
  const test = await openPrompts(t)
  const first = await start(test.prompts)
  const queued = await enqueue(test.prompts)
  const deleted = newId('run')
  const after = { [deleted]: 5, [first.id]: 0, [queued.id]: 0 }
  t.match(await poll(test, { after, waitMs: WAIT_MS }), { missing: [deleted], runs: [] })
  await t.rejects(poll(test, { conversation: newId('conversation') }), { code: 'not_found' })
})

t.test('reports runs of another conversation, which would never end', async (t) => {
  const test = await openPrompts(t)
  const first = await start(test.prompts)
  const second = await start(test.prompts, { new: true })
  const after = { [first.id]: 0, [second.id]: 0 }
  t.match(await poll(test, { conversation: first.conversationId, after, waitMs: WAIT_MS }), {
    missing: [second.id],
    runs: [],
    active: 1,
  })
})

t.test('is one page in total and serves all runs in turn', async (t) => {
  const test = await openPrompts(t)
  const runs = []
  for (let count = 0; count < 3; count++) runs.push(await start(test.prompts, { new: true }))
  const large = Array.from({ length: 20 }, (_, index) => `${index} ${'x'.repeat(200_000)}`)
  for (const { id } of runs) test.fake.emit(id, large)
  const position: Record<string, number> = {}
  const received = new Set<string>()
  for (let requests = 0; received.size < 3; requests++) {
    t.ok(requests < 10, 'a run is not served')
    const response = await poll(test, { after: position })
    const size = response.runs
      .flatMap(({ events }) => events)
      .reduce((sum, event) => sum + JSON.stringify(event).length, 0)
    t.ok(size <= LIMITS.promptEventsPageBytes, `${size} bytes`)
    for (const { run, next, events, finished } of response.runs) {
      t.notOk(finished)
      if (events.length === 0) {
        t.notOk(run.id in position, 'only a run that the client does not know is without events')
        position[run.id] = next
        continue
      }
      t.equal(events.at(0)?.seq, (position[run.id] ?? 0) + 1)
      t.equal(next, events.at(-1)?.seq)
      position[run.id] = next
      received.add(run.id)
    }
  }
  const small = await openPrompts(t)
  const { id } = await start(small.prompts)
  small.fake.emit(id, ['x'.repeat(2 * LIMITS.promptEventsPageBytes), 'next'])
  t.match(await poll(small), { runs: [{ events: [{ seq: 1 }], next: 1 }] }, 'a page has at least one event')
})

t.test('a client that disconnects, and an agent that stops, end the wait', async (t) => {
  const { prompts } = await openPrompts(t)
  const { id } = await start(prompts)
  const queued = await enqueue(prompts)
  const controller = new AbortController()
  const options = { after: 0, limit: 10, waitMs: WAIT_MS }
  const responses = [
    prompts.poll({ after: { [id]: 0 }, waitMs: WAIT_MS }, controller.signal),
    prompts.readEvents(queued.id, { ...options, signal: controller.signal }),
  ]
  controller.abort()
  await Promise.all(responses)
  const others = [
    prompts.poll({ after: { [id]: 0 }, waitMs: WAIT_MS }, signal),
    prompts.readEvents(queued.id, { ...options, signal }),
  ]
  await prompts.close()
  await Promise.all(others)
})

t.test('the events of a queued prompt begin when it starts', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  const first = await start(prompts)
  const queued = await enqueue(prompts)
  const read = async (id: string, waitMs: number) =>
    promptEventsSchema.parse(await prompts.readEvents(id, { after: 0, limit: 10, waitMs, signal }))
  t.match(await read(queued.id, 0), { run: null, events: [], next: 0, finished: false })
  await t.rejects(prompts.readStatus(queued.id), { code: 'not_found', message: /in the queue.*position 1/ })
  const waiting = read(queued.id, WAIT_MS)
  fake.end(first.id)
  await waitUntil('the prompt has started', () => prompts.list(undefined).active?.id === queued.id)
  fake.emit(queued.id, ['started'])
  t.match(await waiting, { run: { id: queued.id }, events: [{ text: 'started' }] })
  const removed = await enqueue(prompts)
  const missing = t.rejects(read(removed.id, WAIT_MS), { code: 'not_found' })
  await prompts.interrupt(removed.id)
  await missing
  await t.rejects(read(createPromptRequest().runId, WAIT_MS), { code: 'not_found' })
})
