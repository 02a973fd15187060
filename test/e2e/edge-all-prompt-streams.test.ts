// Spec §4.16: GET /prompts/events, the events of all runs, with an agent in memory.
import t from 'tap'
import { createEvent, createRun, type FakeRun, respondJson } from '../support/fake-prompt-agent.ts'
import { waitUntil } from '../support/wait-until.ts'
import type { StreamReader } from './edge-stream-reader.ts'
import { startBoxWithPrompts } from './prompt-stream-support.ts'

/** The events as `run A`, `A 1`, `run.done A`, with the letter of their run. */
const describe = (events: StreamReader['events'], runs: Record<string, FakeRun>): string[] => {
  const letterOf = (id: string) => Object.entries(runs).find(([, { run }]) => run.id === id)?.[0] ?? id
  return events.map(({ event, data }) => {
    if (event === 'prompt') return `${letterOf(data.runId)} ${data.seq}`
    return data.run === undefined ? event : `${event} ${letterOf(data.run.id)}`
  })
}

t.test('follows all runs until none is left', async (t) => {
  const { agent, followAll, open, send, waitForPolls, acquiredSlots } = await startBoxWithPrompts(t)
  const old = agent.addRun()
  agent.addEvents(old)
  const A = agent.addRun()
  agent.addEvents(A, 2)
  const ended = agent.addRun()
  for (const run of [old, ended]) agent.finish(run)
  const reader = await followAll()
  t.match(reader.response.headers, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' })
  await waitForPolls(1)
  const B = agent.addRun()
  await waitForPolls(1)
  agent.addEvents(B)
  agent.addEvents(A)
  await waitForPolls(1)
  agent.finish(A)
  await waitForPolls(1)
  t.comment('a run that has ended before the next request, and a prompt that leaves the queue')
  const { conversationId } = A.run
  const C = agent.addRun({ conversationId })
  agent.addEvents(C)
  agent.finish(C)
  const queuedId = 'run_0123456789abcdef01234567'
  agent.queued.add(queuedId)
  agent.finish(B)
  await waitForPolls(1)
  const D = agent.addRun({ id: queuedId })
  agent.finish(D)
  const events = await reader.ended
  t.same(describe(events, { A, B, C, D }), [
    ...['run A', 'A 1', 'A 2', 'run B', 'A 3', 'B 1', 'run.done A'],
    ...['run.done B', 'run C', 'C 1', 'run.done C', 'run D', 'run.done D', 'done'],
  ])
  const { id } = A.run
  t.match(events[1], {
    event: 'prompt',
    id: new RegExp(`^${id}:1,started:\\d+$`),
    data: { ...A.events[0], runId: id, conversationId },
  })
  t.match(events.find(({ event }) => event === 'run.done')?.data, { run: { id, status: 'done' }, next: 3 })
  t.same(events.at(-1)?.data, {})

  t.comment('without runs in progress: the newest run, also without follow=1')
  for (const path of ['/prompts/events', '/prompts/events?follow=1'])
    t.same(describe(await (await open(path)).ended, { D }), ['run D', 'run.done D', 'done'])
  const ofConversation = await followAll(`&conversation=${conversationId}`)
  t.same(describe(await ofConversation.ended, { A, C }), ['run C', 'C 1', 'run.done C', 'done'])
  const head = await send('HEAD', '/prompts/events')
  t.match([head.status, head.headers.get('content-type'), head.text], [200, 'text/event-stream', ''])
  await t.rejects(open('/prompts/events?follow=0'), /400: .*follow/)
  agent.runs.clear()
  t.same(describe(await (await followAll()).ended, {}), ['done'])
  await waitUntil('the slots are released', () => acquiredSlots() === 0)
})

t.test('a client that reconnects with Last-Event-ID gets each event once', async (t) => {
  const { agent, followAll, waitForPolls } = await startBoxWithPrompts(t)
  const A = agent.addRun()
  const first = await followAll()
  await waitForPolls(1)
  const B = agent.addRun()
  agent.addEvents(A, 2)
  agent.addEvents(B, 2)
  agent.finish(B)
  // In the same response, and in the same millisecond.
  const E = agent.addRun({ startedAt: B.run.startedAt })
  agent.addEvents(E)
  agent.finish(E)
  await waitUntil('B and E have ended', () => first.events.at(-1)?.event === 'run.done')
  const received = first.events
  first.disconnect()
  await waitForPolls(0)
  agent.addEvents(A)
  const C = agent.addRun()
  agent.addEvents(C)
  agent.finish(C)
  agent.finish(A)
  for (const [index, { id }] of received.entries()) {
    const rest = await (await followAll('', { 'last-event-id': id })).ended
    const all = describe([...received.slice(0, index + 1), ...rest], { A, B, C, E })
    const events = all.filter((text) => /^[ABCE] \d/.test(text))
    t.same(events.toSorted(), ['A 1', 'A 2', 'A 3', 'B 1', 'B 2', 'C 1', 'E 1'], id)
    t.equal(all.at(-1), 'done')
  }
  for (const id of ['7', 'run_1:7', `${A.run.id}:x`, `started:1,${A.run.id}:1`, `${A.run.id}:1,`])
    await t.rejects(followAll('', { 'last-event-id': id }), /400: .*Last-Event-ID must be the id of an event/)
})

t.test('a run that disappears is an error, and the stream continues', async (t) => {
  const { agent, followAll, waitForPolls } = await startBoxWithPrompts(t)
  const [A, B] = [agent.addRun(), agent.addRun()]
  const reader = await followAll()
  await waitForPolls(1)
  agent.runs.delete(A.run.id)
  agent.notify()
  await waitUntil('the error arrives', () => reader.events.at(-1)?.event === 'error')
  t.match(reader.events.at(-1), { data: { code: 'not_found', message: new RegExp(A.run.id) } })
  await waitForPolls(1)
  agent.finish(B)
  t.same(describe(await reader.ended, { A, B }), ['run A', 'run B', 'error', 'run.done B', 'done'])
})

t.test('the box is away', async (t) => {
  const { agent, followAll, waitForPolls, infra, box } = await startBoxWithPrompts(t)
  const A = agent.addRun()
  const reader = await followAll()
  for (let i = 0; i < 3; i++) {
    await waitForPolls(1)
    infra.dropTunnel(box.id)
    agent.addEvents(A)
    infra.connectAgent(box.id)
  }
  await waitUntil('all events have arrived', () => reader.events.length === 4)
  agent.finish(A)
  t.same(describe(await reader.ended, { A }), ['run A', 'A 1', 'A 2', 'A 3', 'run.done A', 'done'])
})

t.test('a hostile agent gets no further than an error event', async (t) => {
  const { agent, followAll, acquiredSlots } = await startBoxWithPrompts(t)
  const run = createRun()
  const other = createRun()
  const page = { run, events: [createEvent(1)], next: 1, finished: false }
  const second = { ...page, events: [createEvent(2)], next: 2 }
  const poll = { ok: true, type: 'prompt.poll', runs: [page], missing: [], sequence: 1, active: 1 }
  for (const [index, response] of [
    { ...poll, runs: [page] },
    { ...poll, runs: [second, second] },
    { ...poll, runs: [{ ...second, next: 1 }] },
    { ...poll, runs: [{ ...second, finished: true }] },
    { ...poll, runs: [{ ...page, run: other }] },
    { ...poll, runs: [], missing: [other.id] },
    { ...poll, active: -1 },
    { ...poll, sequence: -1 },
    { ...poll, sequence: 2 ** 53 },
    {
      ...poll,
      runs: Array.from({ length: 256 }, () => ({
        ...page,
        run: createRun({ conversationId: run.conversationId }),
      })),
    },
  ].entries()) {
    let polls = 0
    agent.override = async ({ path }) => {
      if (path !== '/prompts/poll')
        return respondJson(200, { ok: true, type: 'prompt.list', runs: [run], active: run, queued: [] })
      polls += 1
      return respondJson(200, polls === 1 ? poll : response)
    }
    const events = await (await followAll(`&conversation=${run.conversationId}`)).ended
    t.match(
      events,
      [{ event: 'run' }, { event: 'prompt' }, { event: 'error', data: { code: 'exec_failed' } }],
      `${index}`,
    )
    t.equal(events.length, 3)
  }
  await waitUntil('the slots are released', () => acquiredSlots() === 0)
})
