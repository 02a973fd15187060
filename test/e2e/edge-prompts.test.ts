// Spec §4.16: the routes of prompts, with an agent in memory. What the coordinator decides itself, what it forwards, and
// what it refuses.

import { pino } from 'pino'
import t, { type Test } from 'tap'
import { ApiError, ERRORS, type ErrorCode } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { type BoxWithFakeAgentOptions, startBoxWithFakeAgent } from '../support/box-with-fake-agent.ts'
import { createFakePromptAgent, createRun, respondError, respondJson } from '../support/fake-prompt-agent.ts'
import { limitsEnv } from '../support/limits-env.ts'

const RUN = 'run_0123456789abcdef01234567'
const CONVERSATION = 'cv_0123456789abcdef01234567'
const PROMPT = { provider: 'claude', prompt: 'What is this?' }

async function setUp(t: Test, options: BoxWithFakeAgentOptions = {}) {
  const agent = createFakePromptAgent()
  const coordinator = await startBoxWithFakeAgent(t, agent.handler, {
    ...options,
    env: { ...limitsEnv({ edgeRequestsPerSecond: 1000 }), ...options.env },
  })
  const { box, edge } = coordinator
  const send = (method: string, path: string, body?: unknown) => edge(box.hostname, method, path, body)
  const suspend = async () => {
    await coordinator.api('POST', `/boxes/${box.id}/suspend`)
    await coordinator.waitForState(box.id, 'suspended')
  }
  return { ...coordinator, agent, send, suspend }
}

t.test('starts, lists, reads and interrupts runs', async (t) => {
  const { agent, send, instance, box } = await setUp(t)
  const variables = JSON.stringify([{ name: 'A', value: 'from box' }])
  await instance.context.db.updateTable('boxes').set({ env_vars: variables }).execute()

  const request = {
    ...PROMPT,
    model: 'openrouter/x',
    reasoningEffort: 'low',
    cwd: '/tmp',
    auto: true,
    new: true,
  }
  const started = await send('POST', '/prompts', request)
  t.match(started, { status: 202, json: { ok: true, type: 'prompt.started', run: { status: 'running' } } })
  const { run } = started.json
  t.match(agent.bodiesOf('/prompts'), [
    { ...request, runId: run.id, newConversationId: run.conversationId, boxEnv: { A: 'from box' } },
  ])

  const queued = await send('POST', '/prompts', {
    ...PROMPT,
    queue: true,
    conversationId: run.conversationId,
  })
  t.match(queued, {
    status: 202,
    json: {
      type: 'prompt.queued',
      conversationId: run.conversationId,
      queued: { position: 1 },
      active: null,
    },
  })

  t.match(await send('GET', '/prompts'), {
    status: 200,
    json: { type: 'prompt.list', runs: [run], active: run, queued: [] },
  })
  t.match((await send('GET', `/prompts?conversation=${run.conversationId}`)).json, { runs: [run] })
  t.match(await send('GET', '/prompts/conversations'), {
    status: 200,
    json: { type: 'prompt.conversations', conversations: [], running: 0, limit: 4 },
  })
  t.match(await send('GET', `/prompts/${run.id}`), {
    status: 200,
    json: { type: 'prompt.status', run, stderr: '', stderrTruncated: false, logPath: '/log' },
  })
  t.match(await send('POST', `/prompts/${queued.json.queued.id}/interrupt`), {
    status: 200,
    json: { id: queued.json.queued.id, wasRunning: false, signal: null, dequeued: true },
  })
  t.match(await send('POST', `/prompts/${run.id}/interrupt`), {
    status: 200,
    json: { type: 'prompt.interrupted', id: run.id, wasRunning: true, signal: 'INT', dequeued: false },
  })
  t.match((await send('POST', '/prompts/interrupt')).json, { id: null, wasRunning: false, interrupted: [] })
  const other = (await send('POST', '/prompts', PROMPT)).json.run
  t.match(await send('POST', `/prompts/interrupt?conversation=${other.conversationId}`), {
    status: 200,
    json: {
      id: other.id,
      wasRunning: true,
      signal: 'INT',
      interrupted: [{ id: other.id, conversationId: other.conversationId, signal: 'INT' }],
      dequeued: [],
    },
  })
  t.equal(agent.requests.at(-1)?.path, `/prompts/interrupt?conversation=${other.conversationId}`)
  for (const path of [
    '/prompts',
    '/prompts/conversations',
    `/prompts/${run.id}`,
    `/prompts/${run.id}/events`,
  ])
    t.match(await send('HEAD', path), { status: 200, text: '' }, path)
  t.ok(box.id)
})

t.test('pages of events', async (t) => {
  const { agent, send } = await setUp(t)
  const run = agent.addRun()
  agent.addEvents(run, 450)
  const read = async (query: string) => (await send('GET', `/prompts/${run.run.id}/events${query}`)).json
  t.match(await read(''), { ok: true, type: 'prompt.events', next: 200, finished: false })
  const pages = []
  for (let after = 0; after < 450; ) {
    const page = await read(`?after=${after}&limit=200&follow=0`)
    pages.push(...page.events)
    after = page.next
  }
  t.same(pages, run.events)
  agent.finish(run)
  t.match(await read('?after=450'), { events: [], next: 450, finished: true, run: { status: 'done' } })
  t.equal((await read('?limit=1')).events.length, 1)
  const far = Number.MAX_SAFE_INTEGER
  t.match(await read(`?after=${far}`), { events: [], next: 2 ** 50 }, 'a position that no run can have')
  agent.queued.add(RUN)
  t.match((await send('GET', `/prompts/${RUN}/events`)).json, {
    run: null,
    events: [],
    next: 0,
    finished: false,
  })
  for (const query of ['after=-1', 'after=x', 'limit=0', 'limit=1001', 'follow=2'])
    t.match(await send('GET', `/prompts/${RUN}/events?${query}`), {
      status: 400,
      json: { error: { code: 'invalid_request' } },
    })
})

t.test('what the coordinator refuses, before it wakes the box', async (t) => {
  const { agent, send, suspend, infra } = await setUp(t)
  await suspend()
  agent.requests.length = 0
  const { length } = infra.calls
  const id = { conversationId: CONVERSATION }
  const tooLong = 'é'.repeat(LIMITS.promptBytes / 2)
  const bodies: [unknown, number, string, RegExp?][] = [
    [{ ...PROMPT, provider: 'gpt' }, 400, 'invalid_provider', /claude, codex, opencode, pi/],
    [{ prompt: 'x' }, 400, 'invalid_provider', /required/],
    [{ provider: 'claude' }, 400, 'prompt_required'],
    [{ provider: 'claude', prompt: ' \n\t' }, 400, 'prompt_required'],
    [{ provider: 'claude', prompt: 7 }, 400, 'prompt_required'],
    [{ ...PROMPT, new: true, ...id }, 400, 'invalid_request', /new and conversationId must not be given/],
    [{ ...PROMPT, new: true, continue: true }, 400, 'invalid_request', /new and continue/],
    [{ ...PROMPT, continue: true, ...id }, 400, 'invalid_request', /conversationId and continue/],
    [{ ...PROMPT, model: '--version' }, 400, 'invalid_request', /model must be the name of a model/],
    [{ ...PROMPT, model: 'openrouter/' }, 400, 'invalid_request', /model must be the name of a model/],
    [{ ...PROMPT, model: '' }, 400, 'invalid_request', /model/],
    [{ ...PROMPT, reasoningEffort: 'huge' }, 400, 'invalid_request', /low, medium, high/],
    [{ ...PROMPT, provider: 'pi', auto: false }, 400, 'invalid_request', /pi runs all tools/],
    [{ ...PROMPT, provider: 'codex', model: 'deepseek/x' }, 400, 'invalid_request', /codex cannot use/],
    [{ ...PROMPT, provider: 'opencode', model: 'opus' }, 400, 'invalid_request', /name its provider/],
    [{ ...PROMPT, cwd: '/a\nb' }, 400, 'invalid_request', /newline/],
    [{ ...PROMPT, cwd: '/a\0b' }, 400, 'invalid_request', /NUL/],
    [{ ...PROMPT, queue: 'yes' }, 400, 'invalid_request', /queue must be true or false/],
    [{ ...PROMPT, prompt: `${tooLong}x` }, 413, 'payload_too_large', /524288 bytes/],
    [{ ...PROMPT, prompt: 'x'.repeat(LIMITS.promptBodyBytes) }, 413, 'payload_too_large'],
    [{ ...PROMPT, conversationId: 'cv_1' }, 404, 'not_found', /conversation/],
    [{ ...PROMPT, conversationId: '' }, 404, 'not_found', /conversation/],
    ['{', 400, 'invalid_request'],
  ]
  for (const [body, status, code, message = /./] of bodies)
    t.match(
      await send('POST', '/prompts', body),
      { status, json: { ok: false, error: { code, message } } },
      JSON.stringify(body)?.slice(0, 80),
    )
  for (const [method, path] of [
    ['GET', '/prompts/run_1'],
    ['GET', '/prompts/run_1/events'],
    ['GET', `/prompts/${RUN.toUpperCase()}`],
    ['POST', '/prompts/run_1/interrupt'],
    ['GET', '/prompts?conversation=cv_1'],
    ['GET', '/prompts/events?conversation=cv_1'],
    ['POST', '/prompts/interrupt?conversation='],
  ] as const)
    t.match(await send(method, path), { status: 404, json: { error: { code: 'not_found' } } }, path)
  for (const [method, path] of [
    ['GET', '/prompts'],
    ['GET', '/prompts/conversations'],
    ['GET', '/prompts/events'],
    ['GET', `/prompts/${RUN}`],
    ['GET', `/prompts/${RUN}/events`],
    ['GET', `/prompts/${RUN}/events?follow=1`],
    ['POST', `/prompts/${RUN}/interrupt`],
    ['POST', '/prompts/interrupt'],
  ] as const)
    t.match(
      await send(method, path),
      { status: 409, json: { error: { code: 'box_not_running', message: /box wake/, state: 'suspended' } } },
      path,
    )
  for (const [method, path, allow] of [
    ['PUT', '/prompts', 'GET, HEAD, POST'],
    ['POST', '/prompts/conversations', 'GET, HEAD'],
    ['DELETE', '/prompts/interrupt', 'POST'],
    ['POST', `/prompts/${RUN}`, 'GET, HEAD'],
  ] as const) {
    const { status, headers } = await send(method, path)
    t.same([status, headers.get('allow')], [405, allow], `${method} ${path}`)
  }
  t.same(agent.requests, [], 'no request to the agent')
  t.same(
    infra.calls.slice(length).filter((call) => call.startsWith('start')),
    [],
    'the box was not woken',
  )

  t.match(await send('POST', '/prompts', { ...PROMPT, prompt: tooLong, new: false, continue: false }), {
    status: 202,
  })
  t.match(infra.calls.slice(length), [/^start/], 'a prompt of 512 KiB wakes the box')
})

t.test('error codes of the agent', async (t) => {
  const { agent, send } = await setUp(t)
  const forwarded: ErrorCode[] = [
    ...([
      'invalid_request',
      'invalid_provider',
      'prompt_required',
      'invalid_path',
      'permission_denied',
    ] as const),
    ...(['not_found', 'payload_too_large', 'prompt_in_progress', 'provider_not_signed_in'] as const),
    ...(['provider_not_installed', 'no_session_to_continue', 'prompt_limit_reached'] as const),
    ...(['provider_mismatch', 'exec_failed'] as const),
  ]
  for (const code of forwarded) {
    agent.override = async () => respondError(new ApiError(code, `${RUN} is in progress.`))
    t.match(
      await send('POST', '/prompts', { ...PROMPT, conversationId: CONVERSATION }),
      { status: ERRORS[code][0], json: { ok: false, error: { code, message: `${RUN} is in progress.` } } },
      code,
    )
  }
  agent.override = async () => respondError(new ApiError('internal_error', 'a secret'))
  t.match(await send('POST', '/prompts', PROMPT), { status: 502, json: { error: { code: 'exec_failed' } } })
  agent.override = undefined
  for (const [method, path] of [
    ['GET', `/prompts/${RUN}`],
    ['GET', `/prompts/${RUN}/events`],
    ['GET', `/prompts/${RUN}/events?follow=1`],
    ['GET', `/prompts?conversation=${CONVERSATION}`],
    ['GET', `/prompts/events?conversation=${CONVERSATION}`],
    ['POST', `/prompts/${RUN}/interrupt`],
  ] as const) {
    const { status, json } = await send(method, path)
    t.match(
      { status, json },
      { status: 404, json: { error: { code: 'not_found', message: /no such/ } } },
      path,
    )
    t.match(await send(method === 'GET' ? 'HEAD' : method, path), { status: 404 })
  }
})

t.test('a hostile agent', async (t) => {
  const { agent, send } = await setUp(t)
  const run = createRun({ id: RUN, conversationId: CONVERSATION })
  const ended = { ...run, status: 'done' as const }
  const event = (seq: number, fields: object = {}) => ({
    ...{ seq, at: run.startedAt, type: 'text', text: 'x', tool: null, raw: null },
    ...fields,
  })
  const page = {
    ok: true,
    type: 'prompt.events',
    run,
    events: [event(3), event(4)],
    next: 4,
    finished: false,
  }
  const status = { ok: true, type: 'prompt.status', run, stderr: '', stderrTruncated: false, logPath: '/log' }
  const started = { ok: true, type: 'prompt.started', run }
  const other = createRun()
  const eventsPath = `/prompts/${RUN}/events?after=2&limit=2`
  const cases: [string, string, string, unknown, (object | string)[]][] = [
    [
      'another run or conversation',
      ...(['POST', '/prompts', { ...PROMPT, new: true }] as const),
      [
        started,
        { ...started, type: 'prompt.other' },
        { ok: true, type: 'prompt.queued' },
        '{}',
        'null',
        '[]',
        '',
        'x',
      ],
    ],
    [
      'a status',
      ...(['GET', `/prompts/${RUN}`, undefined] as const),
      [
        { ...status, run: other },
        { ...status, run: { ...run, eventCount: 2 ** 53 } },
        { ...status, run: { ...run, status: 'queued' } },
        { ...status, run: { ...run, startedAt: 'yesterday' } },
        { ...status, stderr: 'x'.repeat(5000) },
      ],
    ],
    [
      'a page',
      ...(['GET', eventsPath, undefined] as const),
      [
        { ...page, run: other },
        { ...page, events: [event(2), event(4)] },
        { ...page, events: [event(4), event(3)] },
        { ...page, events: [event(3), event(3)] },
        { ...page, events: [event(3), event(4), event(5)], next: 5 },
        { ...page, next: 3 },
        { ...page, events: [], next: 1 },
        { ...page, next: -1 },
        { ...page, next: 2 ** 53 },
        { ...page, finished: true },
        { ...page, run: null, finished: true },
        { ...page, events: [event(3.5)] },
        { ...page, events: [event(3, { type: 'a\nb' })] },
        { ...page, events: [event(3, { tool: { name: 7 } })] },
        { ...page, events: Array(1001).fill(0) },
        JSON.stringify(page).replace('"raw":null', `"raw":${'['.repeat(200_000)}${']'.repeat(200_000)}`),
      ],
    ],
    [
      'an interrupt',
      ...(['POST', `/prompts/${RUN}/interrupt`, undefined] as const),
      [
        {
          ok: true,
          type: 'prompt.interrupted',
          id: other.id,
          wasRunning: true,
          signal: 'INT',
          dequeued: false,
        },
      ],
    ],
    [
      'a list',
      ...(['GET', '/prompts', undefined] as const),
      [
        { ok: true, type: 'prompt.list', runs: Array(51).fill(run), active: null, queued: [] },
        `{"runs":[${'0,'.repeat(1_000_000)}0]}`,
      ],
    ],
  ]
  for (const [name, method, path, body, responses] of cases)
    for (const [index, response] of responses.entries()) {
      agent.override = async () => respondJson(200, response)
      t.match(
        await send(method, path, body),
        { status: 502, json: { error: { code: 'exec_failed' } } },
        `${name} ${index}`,
      )
    }
  agent.override = async ({ body }) => {
    const { runId } = JSON.parse(String(body))
    return respondJson(200, { ...started, run: { ...run, id: runId } })
  }
  for (const target of [{ new: true }, { conversationId: 'cv_111111111111111111111111' }])
    t.match((await send('POST', '/prompts', { ...PROMPT, ...target })).json.error, {
      code: 'exec_failed',
      message: /different conversation/,
    })
  t.match(await send('POST', '/prompts', PROMPT), { status: 202 }, 'the agent may choose the conversation')
  t.comment('pages that are valid')
  for (const [response, next] of [
    [page, 4],
    [{ ...page, next: 9 }, 9],
    [{ ...page, run: ended, finished: true }, 4],
    [{ ...page, secret: 1, events: [event(7, { secret: 1 })], next: 7 }, 7],
  ] as const) {
    agent.override = async () => respondJson(200, response)
    const answer = await send('GET', eventsPath)
    t.match(answer, { status: 200, json: { next } })
    t.notMatch(answer.text, 'secret')
  }
})

t.test('the largest responses of a correct agent', async (t) => {
  const { agent, send } = await setUp(t)
  const MiB = 1024 * 1024
  const run = agent.addRun({ prompt: '\u0001'.repeat(LIMITS.promptBytes) })
  const { json } = await send('GET', `/prompts/${run.run.id}`)
  t.equal(json.run.prompt.length, LIMITS.promptBytes)
  run.run.prompt = ''
  // Almost a page, then an event with a line of 1 MiB in text, tool and raw.
  agent.addEvents(run, 1, { text: 'x'.repeat(MiB - 1000), raw: null })
  const values = Array(MiB / 2 - 100).fill(1)
  agent.addEvents(run, 1, {
    text: 'x'.repeat(MiB - 1000),
    tool: { name: 'list', input: values },
    raw: values,
  })
  const nested = JSON.parse(`${'['.repeat(1000)}${']'.repeat(1000)}`)
  agent.addEvents(run, 1, { raw: nested })
  for (const [index, event] of run.events.entries()) {
    const { status, json } = await send('GET', `/prompts/${run.run.id}/events?after=${index}&limit=1`)
    t.equal(status, 200)
    t.ok(JSON.stringify(json.events) === JSON.stringify([event]), 'the event is unchanged')
  }
})

t.test('an unreachable box', async (t) => {
  const { agent, send, infra, box } = await setUp(t)
  const { promise: received, resolve } = Promise.withResolvers<void>()
  let attempts = 0
  agent.override = (request) => {
    if (request.path !== '/prompts') return undefined
    attempts += 1
    // The agent accepts each prompt, and the first two responses are lost.
    if (attempts > 2) return undefined
    infra.dropTunnel(box.id)
    resolve()
    return Promise.reject(new ApiError('box_unreachable'))
  }
  const response = send('POST', '/prompts', PROMPT)
  await received
  infra.connectAgent(box.id)
  const reconnect = setInterval(() => infra.connectAgent(box.id), 20)
  t.teardown(() => clearInterval(reconnect))
  t.match(await response, { status: 202 })
  clearInterval(reconnect)
  const bodies = agent.requests.filter(({ path }) => path === '/prompts').map(({ body }) => String(body))
  t.equal(bodies.length, 3)
  t.equal(new Set(bodies).size, 1, 'the same request is repeated')
})

t.test('no prompt and no event is stored or logged', async (t) => {
  for (const zeroDataRetention of [0, 1] as const) {
    const lines: string[] = []
    const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
    const { agent, send, instance } = await setUp(t, { log })
    const { db } = instance.context
    await db.updateTable('workspaces').set({ zero_data_retention: zeroDataRetention }).execute()
    const SECRET = 's3cret prompt'
    const { run } = (await send('POST', '/prompts', { ...PROMPT, prompt: SECRET, cwd: '/s3cret' })).json
    await send('POST', '/prompts', { ...PROMPT, prompt: SECRET, provider: 's3cret' })
    await send('POST', '/prompts', { ...PROMPT, prompt: SECRET, conversationId: 's3cret' })
    const fakeRun = agent.getRun(run.id)
    agent.addEvents(fakeRun, 1, { text: SECRET })
    agent.override = ({ path }) =>
      path.endsWith('?after=7&limit=200&waitMs=0') ? Promise.resolve(respondJson(200, SECRET)) : undefined
    t.match(await send('GET', `/prompts/${run.id}/events?after=7`), { status: 502 })
    t.match((await send('GET', `/prompts/${run.id}/events`)).text, SECRET)
    agent.finish(fakeRun)
    t.match((await send('GET', `/prompts/events`)).text, SECRET)
    await send('POST', '/prompts/interrupt')
    const tables = await db.introspection.getTables()
    t.ok(tables.length > 10)
    for (const { name } of tables) {
      const rows = await db
        .selectFrom(name as 'boxes')
        .selectAll()
        .execute()
      t.notMatch(JSON.stringify(rows), 's3cret', name)
    }
    t.notMatch(lines.join(''), 's3cret')
    t.ok(lines.some((line) => line.includes('request rejected')))
  }
})
