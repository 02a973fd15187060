// Spec §4.16: the events of one run as server-sent events, with an agent in memory.
import t from 'tap'
import { ApiError } from '../../shared/errors.ts'
import { createEvent, createRun, respondError, respondJson } from '../support/fake-prompt-agent.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { namesOf, startBoxWithPrompts } from './prompt-stream-support.ts'

const RUN = 'run_0123456789abcdef01234567'

t.test('follows a run to its end', async (t) => {
  const { agent, follow, open, send, waitForPolls, acquiredSlots } = await startBoxWithPrompts(t)
  const run = agent.addRun()
  const { id } = run.run
  agent.addEvents(run, 2)
  const reader = await follow(id, '', { 'accept-encoding': 'gzip' })
  t.match(reader.response.headers, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    'content-encoding': undefined,
  })
  await waitForPolls(1)
  agent.addEvents(run, 1, { text: 'a\nb\r\u2028', tool: { name: 'shell', input: { command: 'ls' } } })
  await waitUntil('the third event arrives', () => reader.events.length === 3)
  await waitForPolls(1)
  agent.addEvents(run, 1500)
  await waitForPolls(1)
  agent.finish(run)
  const events = await reader.ended
  t.same(
    events.slice(0, -1),
    run.events.map((event) => ({ event: 'prompt', id: `${event.seq}`, data: event })),
  )
  t.same(events.at(-1), { event: 'done', id: '1503', data: { run: run.run, next: 1503 } })
  await waitUntil('the slot is released', () => acquiredSlots() === 0)

  t.comment('other ways to open a stream, and positions')
  const path = `/prompts/${id}/events`
  const accept = { accept: 'application/json;q=0.5, Text/Event-Stream;q=0.9' }
  for (const [reader, count] of [
    [await open(path, accept), 1504],
    [await open(`${path}?follow=1&after=1500`), 4],
    [await open(`${path}?follow=1&after=1500`, { 'last-event-id': '1502' }), 2],
    [await open(`${path}?follow=1&after=1503`), 1],
    [await open(`${path}?follow=1&limit=1`), 1504],
  ] as const) {
    const events = await reader.ended
    t.equal(events.length, count)
    t.match(events.at(-1), { event: 'done', id: '1503' })
  }
  t.match(await send('GET', `${path}?follow=0`, undefined, accept), {
    status: 200,
    json: { type: 'prompt.events' },
  })
  await t.rejects(
    open(`${path}?follow=1`, { 'last-event-id': '1:0' }),
    /400: .*Last-Event-ID must be the seq/,
  )
  const head = await send('HEAD', `${path}?follow=1`)
  t.match([head.status, head.headers.get('content-type'), head.text], [200, 'text/event-stream', ''])
  t.equal(acquiredSlots(), 0)
})

t.test('a queued prompt: the stream waits for its start', async (t) => {
  const { agent, follow, waitForPolls } = await startBoxWithPrompts(t)
  agent.queued.add(RUN)
  const reader = await follow(RUN)
  await waitForPolls(1)
  const run = agent.addRun({ id: RUN })
  agent.addEvents(run)
  agent.finish(run)
  await reader.ended
  t.same(namesOf(reader), ['prompt 1', 'done'])

  agent.runs.clear()
  agent.queued.add(RUN)
  const removed = await follow(RUN)
  await waitForPolls(1)
  agent.queued.clear()
  agent.notify()
  t.match(await removed.ended, [{ event: 'error', id: '0', data: { code: 'not_found' } }])
})

t.test('the box is away: the stream continues without a gap or a double', async (t) => {
  const { agent, follow, waitForPolls, infra, box } = await startBoxWithPrompts(t)
  const run = agent.addRun()
  agent.addEvents(run, 3)
  const reader = await follow(run.run.id)
  for (let i = 0; i < 5; i++) {
    await waitForPolls(1)
    infra.dropTunnel(box.id)
    agent.addEvents(run, 3)
    infra.connectAgent(box.id)
  }
  await waitForPolls(1)
  t.comment('a response is lost after the agent has sent it')
  agent.override = () => {
    agent.override = undefined
    return Promise.reject(new ApiError('box_unreachable'))
  }
  agent.addEvents(run, 3)
  await waitUntil('the override has been used', () => agent.override === undefined)
  agent.finish(run)
  const events = await reader.ended
  t.same(
    events.slice(0, -1).map(({ data }) => data.seq),
    run.events.map(({ seq }) => seq),
  )
  t.match(events.at(-1), { event: 'done' })
})

t.test('a suspended box', async (t) => {
  const { agent, follow, followAll, waitForPolls, suspend } = await startBoxWithPrompts(t)
  const run = agent.addRun()
  agent.addEvents(run)
  const [reader, all] = [await follow(run.run.id), await followAll()]
  await waitForPolls(2)
  await suspend()
  t.match((await reader.ended).at(-1), {
    event: 'error',
    id: '1',
    data: { code: 'box_not_running', message: /box wake/ },
  })
  t.match((await all.ended).at(-1), { event: 'error', id: /^run_.*:1,started:\d+$/ })
})

t.test('a client that disconnects ends the request to the agent', async (t) => {
  const { agent, follow, followAll, waitForPolls, acquiredSlots } = await startBoxWithPrompts(t)
  const run = agent.addRun()
  const readers = [await follow(run.run.id), await followAll()]
  await waitForPolls(2)
  t.equal(acquiredSlots(), 2)
  for (const reader of readers) reader.disconnect()
  await waitForPolls(0)
  await waitUntil('the slots are released', () => acquiredSlots() === 0)
})

t.test('a revoked key ends its streams only', async (t) => {
  const coordinator = await startBoxWithPrompts(t)
  const { agent, api, follow, followAll, waitForPolls } = coordinator
  const session = await createTestSession(coordinator)
  const { json } = await api('POST', '/keys', { name: 'test' }, session)
  const headers = { authorization: `Bearer ${json.secret}` }
  const run = agent.addRun()
  const { id } = run.run
  const readers = [await follow(id, '', headers), await followAll('', headers)]
  const other = await follow(id)
  await waitForPolls(3)
  await api('DELETE', `/keys/${json.key.id}`, undefined, session)
  for (const reader of readers)
    t.match((await reader.ended).at(-1), {
      event: 'error',
      data: { code: 'unauthorized', message: /revoked/ },
    })
  await waitForPolls(1)
  agent.finish(run)
  t.match((await other.ended).at(-1), { event: 'done' })
})

t.test('the coordinator stops', async (t) => {
  const { agent, follow, followAll, waitForPolls, instance } = await startBoxWithPrompts(t)
  const run = agent.addRun()
  agent.addEvents(run, 2)
  const readers = [await follow(run.run.id), await followAll()]
  await waitForPolls(2)
  const drained = instance.drain(10_000)
  for (const reader of readers)
    t.match((await reader.ended).at(-1), {
      event: 'error',
      id: /2/,
      data: { code: 'control_plane_unavailable', message: /Last-Event-ID/ },
    })
  await drained
  t.equal(agent.waiting, 0)
})

t.test('prompt streams count among the four streams of a key', async (t) => {
  const { agent, send, follow, followAll, waitForPolls } = await startBoxWithPrompts(t)
  const run = agent.addRun()
  const { id } = run.run
  const readers = [await follow(id), await follow(id), await followAll(), await followAll()]
  await waitForPolls(4)
  await t.rejects(follow(id), /429: .*rate_limited/)
  await t.rejects(followAll(), /429: .*rate_limited/)
  t.match(await send('GET', `/prompts/${id}`), { status: 200 }, 'another request is served')
  readers[0]?.disconnect()
  await waitUntil('its slot is released', () => follow(id).catch(() => undefined))
})

t.test('a hostile agent gets no further than an error event', async (t) => {
  const { agent, follow, acquiredSlots } = await startBoxWithPrompts(t)
  const run = createRun({ id: RUN })
  const page = { ok: true, type: 'prompt.events', run, events: [createEvent(1)], next: 1, finished: false }
  const second = { ...page, events: [createEvent(2)], next: 2 }
  for (const [index, response] of [
    { ...second, events: [createEvent(1)] },
    { ...second, events: [createEvent(3), createEvent(2)] },
    { ...second, next: 1 },
    { ...second, next: 1, events: [] as object[], run: createRun() },
    { ...second, next: 0, events: [] },
    { ...second, finished: true },
    'hello',
    `${'['.repeat(1_000_000)}`,
  ].entries()) {
    agent.override = async ({ path }) => respondJson(200, path.includes('after=0') ? page : response)
    const events = await (await follow(RUN)).ended
    t.match(events, [{ id: '1' }, { event: 'error', id: '1', data: { code: 'exec_failed' } }], `${index}`)
    t.equal(events.length, 2)
  }
  agent.override = async ({ path }) =>
    path.includes('after=0') ? respondJson(200, page) : respondError(new ApiError('internal_error', 'secret'))
  t.match((await (await follow(RUN)).ended).at(-1), { event: 'error', data: { code: 'exec_failed' } })
  await waitUntil('the slots are released', () => acquiredSlots() === 0)

  t.comment('responses without events, which the agent should have delayed')
  const startedAt = performance.now()
  let responses = 0
  agent.override = async () => {
    responses += 1
    const isLast = responses === 4
    return respondJson(200, {
      ...page,
      events: [],
      next: 0,
      finished: isLast,
      ...(isLast && { run: { ...run, status: 'done' } }),
    })
  }
  t.match(await (await follow(RUN)).ended, [{ event: 'done', data: { next: 0 } }])
  t.ok(performance.now() - startedAt > 1500, 'they are requested about once per second')
})

t.test('a client that does not read costs only its own stream', async (t) => {
  const { agent, follow, waitForPolls, acquiredSlots } = await startBoxWithPrompts(t)
  const runs = [agent.addRun(), agent.addRun()] as const
  const [slow, fast] = runs
  agent.addEvents(slow)
  const paused = await follow(slow.run.id)
  await waitUntil('the first event arrives', () => paused.events.length === 1)
  paused.response.socket.pause()
  const reading = await follow(fast.run.id)
  await waitForPolls(2)
  const text = 'x'.repeat(1_000_000)
  for (const run of runs) {
    agent.addEvents(run, 30, { text })
    agent.finish(run)
  }
  t.equal((await reading.ended).length, 31)
  const countRequests = () => agent.requests.filter(({ path }) => path.includes(slow.run.id)).length
  t.ok(countRequests() < 20, `${countRequests()} pages were requested for the client that does not read`)
  paused.response.socket.resume()
  t.match(
    (await paused.ended).map(({ data }) => data.seq ?? data.next),
    [...Array(31).keys(), 30].map((i) => i + 1),
  )
  await waitUntil('the slots are released', () => acquiredSlots() === 0)
})
