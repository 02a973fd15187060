// An agent in memory that implements the routes of prompts. Tests add runs and events, and replace single responses.
import type { TunnelCall, TunnelCallResponse } from '../../coordinator/agents/tunnel/types.ts'
import {
  type AgentPromptRequest,
  agentPromptRequestSchema,
  type PromptEvent,
  type PromptPollRequest,
  promptPollRequestSchema,
  type Run,
} from '../../shared/api/prompts.ts'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { AgentHandler } from './box-with-fake-agent.ts'

const STARTED_AT = Date.parse('2026-01-01T00:00:00.000Z')

export type FakeRun = { run: Run; events: PromptEvent[] }

export const respondJson = (status: number, body: unknown): TunnelCallResponse => ({
  status,
  body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
})

export const respondError = (error: ApiError): TunnelCallResponse =>
  respondJson(error.status, edgeErrorBody(error))

export function createRun(fields: Partial<Run> = {}): Run {
  return {
    id: newId('run'),
    conversationId: newId('conversation'),
    provider: 'claude',
    model: null,
    reasoningEffort: null,
    auto: false,
    status: 'running',
    error: null,
    exitCode: null,
    pid: 7,
    cwd: '~',
    startedAt: new Date(STARTED_AT).toISOString(),
    finishedAt: null,
    sessionId: null,
    resumedFrom: null,
    parent: null,
    eventCount: 0,
    prompt: 'What is this?',
    ...fields,
  }
}

export const createEvent = (seq: number, fields: Partial<PromptEvent> = {}): PromptEvent => ({
  seq,
  at: new Date(STARTED_AT).toISOString(),
  type: 'text',
  text: `line ${seq}`,
  tool: null,
  raw: { line: seq },
  ...fields,
})

export type FakePromptAgent = {
  runs: Map<string, FakeRun>
  /** Ids of prompts in the queue. */
  queued: Set<string>
  /** The requests so far. */
  requests: TunnelCall[]
  /** Requests that wait for an event. */
  waiting: number
  /** Responds instead of this agent, unless it returns undefined. */
  override: ((request: TunnelCall) => Promise<TunnelCallResponse> | undefined) | undefined
  addRun(fields?: Partial<Run>): FakeRun
  /** Throws when there is no such run. */
  getRun(id: string): FakeRun
  addEvents(run: FakeRun, count?: number, fields?: Partial<PromptEvent>): void
  finish(run: FakeRun, status?: Run['status']): void
  /** To be called after a change of `runs` and `queued`. */
  notify(): void
  /** Rejects the requests that wait for an event, as a closed tunnel does. */
  disconnect(): void
  /** The JSON bodies of the requests to a path. */
  bodiesOf(path: string): unknown[]
  handler: AgentHandler
}

export function createFakePromptAgent(): FakePromptAgent {
  /** In the order in which they started. */
  const runs = new Map<string, FakeRun>()
  const queued = new Set<string>()
  const requests: TunnelCall[] = []
  let waiters: { resolve(): void; reject(error: Error): void }[] = []
  let starts = 0
  const agent: FakePromptAgent = {
    runs,
    queued,
    requests,
    waiting: 0,
    override: undefined,
    getRun,
    addRun(fields = {}) {
      const startedAt = new Date(STARTED_AT + ++starts * 1000).toISOString()
      const entry: FakeRun = { run: createRun({ startedAt, ...fields }), events: [] }
      runs.set(entry.run.id, entry)
      queued.delete(entry.run.id)
      agent.notify()
      return entry
    },
    addEvents({ run, events }, count = 1, fields = {}) {
      for (let i = 0; i < count; i++) events.push(createEvent(events.length + 1, fields))
      run.eventCount = events.length
      agent.notify()
    },
    finish({ run }, status = 'done') {
      Object.assign(run, { status, finishedAt: run.startedAt, exitCode: 0 })
      agent.notify()
    },
    notify() {
      const resumed = waiters
      waiters = []
      for (const { resolve } of resumed) resolve()
    },
    disconnect() {
      const lost = waiters
      waiters = []
      for (const { reject } of lost) reject(new ApiError('box_unreachable'))
    },
    bodiesOf: (path) =>
      requests
        .filter((request) => request.path === path && request.body !== undefined)
        .map(({ body }) => JSON.parse(String(body))),
    handler: async (request) => {
      requests.push(request)
      try {
        return (await agent.override?.(request)) ?? (await respond(request))
      } catch (error) {
        if (error instanceof ApiError && error.code !== 'box_unreachable') return respondError(error)
        throw error
      }
    },
  }

  function getRun(id: string): FakeRun {
    const entry = runs.get(id)
    if (entry === undefined) throw new ApiError('not_found', 'There is no such run.')
    return entry
  }

  function readPage(id: string, after: number, limit: number) {
    const { run, events } = getRun(id)
    const page: PromptEvent[] = []
    let bytes = 0
    for (const event of events.slice(after, after + limit)) {
      bytes += JSON.stringify(event).length
      if (page.length > 0 && bytes > LIMITS.promptEventsPageBytes) break
      page.push(event)
    }
    const next = page.at(-1)?.seq ?? after
    const finished = run.status !== 'running' && next >= (events.at(-1)?.seq ?? 0)
    return { run, events: page, next, finished }
  }

  /** Calls `read` until its result is not undefined, at the latest after `waitMs`. Then `readLast`. */
  async function waitFor<T>(
    read: () => T | undefined,
    readLast: () => T | undefined,
    waitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<T | undefined> {
    const deadline = performance.now() + waitMs
    for (;;) {
      const result = read()
      if (result !== undefined) return result
      const remainingMs = deadline - performance.now()
      if (remainingMs <= 0) return readLast()
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, remainingMs)
      const onAbort = () => reject(signal?.reason)
      signal?.addEventListener('abort', onAbort, { once: true })
      waiters.push({ resolve, reject })
      agent.waiting += 1
      try {
        signal?.throwIfAborted()
        await promise
      } finally {
        agent.waiting -= 1
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      }
    }
  }

  function submit({ runId, newConversationId, ...request }: AgentPromptRequest) {
    const { provider, conversationId = newConversationId, queue } = request
    const prompt = request.prompt.slice(0, LIMITS.promptPreviewChars)
    if (queue) {
      queued.add(runId)
      const entry = { id: runId, conversationId, provider, model: null, position: 1, prompt }
      return {
        type: 'prompt.queued',
        conversationId,
        queued: { ...entry, queuedAt: new Date(STARTED_AT).toISOString() },
        active: null,
      }
    }
    const { run } = runs.get(runId) ?? agent.addRun({ id: runId, conversationId, provider, prompt })
    return { type: 'prompt.started', run }
  }

  function poll({ conversation, after, sequence, waitMs }: PromptPollRequest, signal?: AbortSignal) {
    const all = () =>
      [...runs.values()].filter(
        ({ run }) => conversation === undefined || run.conversationId === conversation,
      )
    const sequenceOf = ({ id }: Run) => [...runs.keys()].indexOf(id) + 1
    const read = (isLast: boolean): object | undefined => {
      const active = all().filter(({ run }) => run.status === 'running').length + queued.size
      const inProgress = all().some(({ run }) => run.status === 'running')
      const includesNewest = sequence === undefined && Object.keys(after).length === 0 && !inProgress
      const missing = Object.keys(after).filter((id) => !runs.has(id))
      const pages = all()
        .filter(
          ({ run }, index, { length }) =>
            run.id in after ||
            run.status === 'running' ||
            (sequence !== undefined && sequenceOf(run) > sequence) ||
            (includesNewest && index === length - 1),
        )
        .map(({ run }) => readPage(run.id, after[run.id] ?? 0, 1000))
        .filter(({ run, events, finished }) => events.length > 0 || finished || !(run.id in after))
      if (pages.length + missing.length === 0 && active > 0 && !isLast) return undefined
      return { type: 'prompt.poll', runs: pages, missing, sequence: runs.size, active }
    }
    return waitFor(
      () => read(false),
      () => read(true),
      waitMs,
      signal,
    )
  }

  async function readEvents(id: string, query: URLSearchParams, signal?: AbortSignal) {
    const [after, limit, waitMs] = ['after', 'limit', 'waitMs'].map((name) => Number(query.get(name)))
    const read = () => {
      if (queued.has(id)) return { run: null, events: [], next: after ?? 0, finished: false }
      return readPage(id, after ?? 0, limit ?? 0)
    }
    const isNew = (page: ReturnType<typeof read>) => page.events.length > 0 || page.finished
    const page = await waitFor(() => (isNew(read()) ? read() : undefined), read, waitMs ?? 0, signal)
    return { type: 'prompt.events', ...page }
  }

  function interrupt(id: string) {
    const isQueued = queued.delete(id)
    if (isQueued) return { wasRunning: false, signal: null, dequeued: true }
    const entry = getRun(id)
    const wasRunning = entry.run.status === 'running'
    if (wasRunning) agent.finish(entry, 'interrupted')
    return { wasRunning, signal: wasRunning ? ('INT' as const) : null, dequeued: false }
  }

  function interruptAll() {
    const dequeued = [...queued]
    queued.clear()
    const interrupted = [...runs.values()]
      .filter(({ run }) => run.status === 'running')
      .map(({ run: { id, conversationId } }) => ({ id, conversationId, ...interrupt(id) }))
    const [first] = interrupted
    const { id = null, wasRunning = false, signal = null } = first ?? {}
    return { type: 'prompt.interrupted', id, wasRunning, signal, interrupted, dequeued }
  }

  function list(conversation: string | null) {
    const listed = [...runs.values()]
      .map(({ run }) => run)
      .filter((run) => conversation === null || run.conversationId === conversation)
      .reverse()
    if (conversation !== null && listed.length === 0)
      throw new ApiError('not_found', 'There is no such conversation.')
    const active = listed.find(({ status }) => status === 'running') ?? null
    return { type: 'prompt.list', runs: listed.slice(0, 50), active, queued: [] }
  }

  async function route({ method, path, body, signal }: TunnelCall): Promise<object | undefined> {
    const { pathname, searchParams } = new URL(path, 'http://agent')
    const json = () => JSON.parse(String(body))
    const [, , id = '', verb = ''] = pathname.split('/')
    switch (`${method} ${pathname.replace(/run_[0-9a-f]{24}/, 'ID')}`) {
      case 'POST /prompts':
        return submit(agentPromptRequestSchema.parse(json()))
      case 'GET /prompts':
        return list(searchParams.get('conversation'))
      case 'GET /prompts/conversations':
        return { type: 'prompt.conversations', conversations: [], running: 0, limit: 4 }
      case 'GET /prompts/ID':
        return {
          type: 'prompt.status',
          run: getRun(id).run,
          stderr: '',
          stderrTruncated: false,
          logPath: '/log',
        }
      case 'GET /prompts/ID/events':
        return readEvents(id, searchParams, signal)
      case 'POST /prompts/poll':
        return poll(promptPollRequestSchema.parse(json()), signal)
      case 'POST /prompts/ID/interrupt':
        return { type: 'prompt.interrupted', id, ...interrupt(id) }
      case 'POST /prompts/interrupt':
        return interruptAll()
      default:
        throw new ApiError('not_found', `The agent has no ${verb || pathname}.`)
    }
  }

  const respond = async (request: TunnelCall): Promise<TunnelCallResponse> =>
    respondJson(200, { ok: true, ...(await route(request)) })

  return agent
}
