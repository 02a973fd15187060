// The prompt routes of a fake coordinator: runs whose events the test adds, and streams that fail in configurable ways.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type Conversation,
  type PromptEvent,
  type PromptRequest,
  promptEventSchema,
  promptRequestSchema,
  type QueuedPrompt,
  type Run,
  type RunStatus,
} from '../../shared/api/prompts.ts'
import { ApiError, type ErrorCode, edgeErrorBody } from '../../shared/errors.ts'
import { createRun as createPromptRun } from '../support/fake-prompt-agent.ts'
import { type FakeCoordinator, sendJson } from './fake-coordinator.ts'

/** How one connection of a stream fails: before the response, or after `events` events. */
export type StreamFault =
  | { kind: 'error_response'; code: ErrorCode }
  | { kind: 'disconnect' | 'error'; events: number; rewind?: number }

export type FakeRun = {
  run: Run
  events: PromptEvent[]
  /** Called for each connection; the first one is 0. */
  getFault(connection: number): StreamFault | null
  /** Last-Event-ID of each connection. */
  connections: (string | undefined)[]
  emit(type: PromptEvent['type'], text?: string | null, tool?: PromptEvent['tool']): void
  end(status: Exclude<RunStatus, 'running'>, error?: string | null): void
}

export type FakePrompts = {
  runs: FakeRun[]
  queued: QueuedPrompt[]
  conversations: Conversation[]
  requests: PromptRequest[]
  interrupts: string[]
  /** Called for each accepted run, before the response. */
  onStart(run: FakeRun): void
  /** Called by an interrupt of a run in progress. Default: the run is interrupted. */
  onInterrupt(run: FakeRun): void
  /** The next prompt is queued. */
  queueNext(): void
  startQueued(): FakeRun
  add(fields?: Partial<Run>): FakeRun
}

const AT = '2030-01-01T00:00:00.000Z'
const newId = (prefix: string) => `${prefix}_${randomBytes(12).toString('hex')}`

/** The runs are those of the box fig. */
export function addFakePrompts(fake: FakeCoordinator): FakePrompts {
  let isNextQueued = false
  const prompts: FakePrompts = {
    runs: [],
    queued: [],
    conversations: [],
    requests: [],
    interrupts: [],
    onStart: (run) => run.end('done'),
    onInterrupt: (run) => run.end('interrupted', 'Interrupted by a request.'),
    queueNext() {
      isNextQueued = true
    },
    startQueued() {
      const [{ position: _, queuedAt: __, ...fields } = failQueue(), ...rest] = prompts.queued
      prompts.queued = rest.map((queued, index) => ({ ...queued, position: index + 1 }))
      return prompts.add(fields)
    },
    add(fields = {}) {
      const run = createRun(fields)
      prompts.runs.unshift(run)
      return run
    },
  }
  const find = (id: string): FakeRun => {
    const found = prompts.runs.find(({ run }) => run.id === id)
    if (found === undefined) throw new ApiError('not_found', 'No such run.')
    return found
  }
  const interrupt = (fakeRun: FakeRun) => {
    const wasRunning = fakeRun.run.status === 'running'
    if (wasRunning) prompts.onInterrupt(fakeRun)
    return { wasRunning, signal: wasRunning ? ('INT' as const) : null }
  }

  fake.addRoutes([
    [
      /^POST \/v1\/box\/fig\/prompts$/,
      async (request, response) => {
        const body = promptRequestSchema.parse(JSON.parse(await readText(request)))
        prompts.requests.push(body)
        const fields = {
          provider: body.provider,
          model: body.model ?? null,
          prompt: body.prompt.slice(0, 2048),
          conversationId: body.conversationId ?? newId('cv'),
        }
        if (isNextQueued) {
          isNextQueued = false
          const position = prompts.queued.length + 1
          const queued: QueuedPrompt = { id: newId('run'), position, queuedAt: AT, ...fields }
          prompts.queued.push(queued)
          const active = prompts.runs.find(({ run }) => run.status === 'running')?.run ?? null
          const { conversationId } = fields
          return sendJson(response, { ok: true, type: 'prompt.queued', conversationId, queued, active }, 202)
        }
        const fakeRun = prompts.add(fields)
        const run = { ...fakeRun.run }
        prompts.onStart(fakeRun)
        sendJson(response, { ok: true, type: 'prompt.started', run }, 202)
      },
    ],
    [
      /^GET \/v1\/box\/fig\/prompts(?:\?conversation=(cv_\w+))?$/,
      async (_, response, [, conversation]) => {
        const isListed = ({ conversationId }: { conversationId: string }) =>
          conversation === undefined || conversationId === conversation
        const runs = prompts.runs.map(({ run }) => run).filter(isListed)
        const active = runs.find(({ status }) => status === 'running') ?? null
        sendJson(response, {
          ok: true,
          type: 'prompt.list',
          runs,
          active,
          queued: prompts.queued.filter(isListed),
        })
      },
    ],
    [
      /^GET \/v1\/box\/fig\/prompts\/conversations$/,
      async (_, response) => {
        const { conversations } = prompts
        sendJson(response, { ok: true, type: 'prompt.conversations', conversations, running: 0, limit: 4 })
      },
    ],
    [
      /^GET \/v1\/box\/fig\/prompts\/(run_\w+)$/,
      async (_, response, [, id = '']) =>
        sendJson(response, {
          ok: true,
          type: 'prompt.status',
          run: find(id).run,
          stderr: 'a warning\u001b[2J\nsecond line\n',
          stderrTruncated: true,
          logPath: '/home/user/.log',
        }),
    ],
    [
      /^GET \/v1\/box\/fig\/prompts\/(run_\w+)\/events\?follow=1$/,
      async (request, response, [, id = '']) => streamEvents(find(id), request, response),
    ],
    [
      /^POST \/v1\/box\/fig\/prompts\/(run_\w+)\/interrupt$/,
      async (_, response, [, id = '']) => {
        prompts.interrupts.push(id)
        const dequeued = prompts.queued.some((queued) => queued.id === id)
        prompts.queued = prompts.queued.filter((queued) => queued.id !== id)
        const result = dequeued ? { wasRunning: false, signal: null } : interrupt(find(id))
        sendJson(response, { ok: true, type: 'prompt.interrupted', id, ...result, dequeued })
      },
    ],
    [
      /^POST \/v1\/box\/fig\/prompts\/interrupt(?:\?conversation=(cv_\w+))?$/,
      async (_, response, [, conversation]) => {
        prompts.interrupts.push(conversation ?? 'all')
        const isSelected = ({ conversationId }: { conversationId: string }) =>
          conversation === undefined || conversationId === conversation
        const dequeued = prompts.queued.filter(isSelected).map(({ id }) => id)
        prompts.queued = prompts.queued.filter((queued) => !isSelected(queued))
        const selected = prompts.runs.filter(({ run }) => run.status === 'running' && isSelected(run))
        const interrupted = selected.map((fakeRun) => {
          const { id, conversationId } = fakeRun.run
          return { id, conversationId, signal: interrupt(fakeRun).signal }
        })
        const [first] = interrupted
        const { id = null, signal = null } = first ?? {}
        const wasRunning = first !== undefined
        sendJson(response, {
          ok: true,
          type: 'prompt.interrupted',
          id,
          wasRunning,
          signal,
          interrupted,
          dequeued,
        })
      },
    ],
  ])
  return prompts
}

function failQueue(): never {
  throw new Error('the queue is empty')
}

export function createConversation(fields: Partial<Conversation> = {}): Conversation {
  return {
    id: newId('cv'),
    provider: 'claude',
    model: null,
    cwd: '~',
    prompts: 2,
    queued: 0,
    running: false,
    lastRunId: newId('run'),
    lastStatus: 'done',
    sessionId: 'session-1',
    lastPrompt: 'fix it',
    createdAt: AT,
    updatedAt: AT,
    ...fields,
  }
}

function createRun(fields: Partial<Run>): FakeRun {
  const fakeRun: FakeRun = {
    run: createPromptRun({ startedAt: AT, prompt: 'hello', ...fields }),
    events: [],
    getFault: () => null,
    connections: [],
    emit(type, text = null, tool = null) {
      const seq = fakeRun.events.length + 1
      const raw = { line: seq }
      fakeRun.events.push(promptEventSchema.parse({ seq, at: AT, type, text, tool, raw }))
      fakeRun.run = { ...fakeRun.run, eventCount: seq }
    },
    end(status, error = null) {
      fakeRun.run = { ...fakeRun.run, status, error, finishedAt: '2030-01-01T00:00:12.000Z' }
    },
  }
  return fakeRun
}

const POLL_MS = 5

async function streamEvents(
  fakeRun: FakeRun,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const lastEventId = request.headers['last-event-id']
  const fault = fakeRun.getFault(fakeRun.connections.length)
  fakeRun.connections.push(lastEventId === undefined ? undefined : String(lastEventId))
  if (fault?.kind === 'error_response') {
    const error = new ApiError(fault.code)
    return sendJson(response, edgeErrorBody(error), error.status)
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(': keep-alive\n\n')
  let position = Math.max(0, Number(lastEventId ?? 0) - (fault?.rewind ?? 0))
  let sent = 0
  for (;;) {
    for (const event of fakeRun.events.filter(({ seq }) => seq > position)) {
      const text = `event: prompt\nid: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`
      if (fault !== null && sent === fault.events) {
        if (fault.kind === 'disconnect')
          return void response.write(text.slice(0, 30), () => response.destroy())
        const data = { code: 'box_unreachable', message: 'The box does not respond.' }
        return void response.end(`event: error\ndata: ${JSON.stringify(data)}\n\n`)
      }
      response.write(text)
      position = event.seq
      sent += 1
    }
    if (fakeRun.run.status !== 'running') {
      const data = JSON.stringify({ run: fakeRun.run, next: position })
      return void response.end(`event: done\ndata: ${data}\n\n`)
    }
    if (response.destroyed) return
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
