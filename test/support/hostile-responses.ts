// Invalid responses of a hostile agent to the requests of the edge, and invalid reports.
import { randomBytes } from 'node:crypto'
import { request as httpRequest } from 'node:http'
import { WebSocket } from 'ws'
import {
  BOX_HEADER,
  DIAL_BACK_HEADER,
  STREAM_PATH_PREFIX,
  TRANSFER_PATH_PREFIX,
} from '../../shared/protocol.ts'
import type { BoxIdentity, HostileRequest } from './hostile-agent.ts'

const MiB = 1024 * 1024
const OTHER_ID = 'p_111111111111111111111111'
const VALUES: unknown[] = [
  null,
  true,
  -1,
  1.5,
  2 ** 53,
  1e308,
  '',
  'x'.repeat(MiB),
  '\0\ud800',
  '../../etc/passwd',
  [],
  Array(1000).fill({}),
  { __proto__: null, constructor: {} },
]
/** Fields of all responses, so that one value is wrong for one field or another in each of them. */
const FIELDS = [
  ...['processId', 'commandId', 'pid', 'exitCode', 'signal', 'stdout', 'stderr', 'running', 'processes'],
  ...['startedAt', 'finishedAt', 'path', 'size', 'content', 'encoding', 'mode', 'cwd', 'logPath', 'command'],
  ...[
    'run',
    'runs',
    'queued',
    'active',
    'conversationId',
    'conversations',
    'limit',
    'events',
    'next',
    'finished',
  ],
  ...['missing', 'sequence', 'id', 'wasRunning', 'interrupted', 'dequeued', 'stderrTruncated'],
]
const fill = (value: unknown) => Object.fromEntries(FIELDS.map((field) => [field, value]))
const createBody = (type: string, value: unknown) => JSON.stringify({ ok: true, type, ...fill(value) })

/** The id of the run in requests to the routes of prompts. */
export const HOSTILE_RUN_ID = 'run_0123456789abcdef01234567'
const CONVERSATION_ID = 'cv_0123456789abcdef01234567'
const AT = '2026-01-01T00:00:00.000Z'
const RUN = {
  ...{ id: HOSTILE_RUN_ID, conversationId: CONVERSATION_ID, provider: 'claude', model: null, auto: false },
  ...{
    reasoningEffort: null,
    status: 'running',
    error: null,
    exitCode: null,
    pid: 1,
    cwd: '~',
    startedAt: AT,
  },
  ...{ finishedAt: null, sessionId: null, resumedFrom: null, parent: null, eventCount: 1, prompt: 'x' },
}
const EVENT = { seq: 1, at: AT, type: 'text', text: 'x', tool: null, raw: { line: 1 } }
const PAGE = { run: RUN, events: [EVENT], next: 1, finished: false }
const QUEUED = {
  ...{ id: HOSTILE_RUN_ID, conversationId: CONVERSATION_ID, provider: 'claude', model: null, position: 1 },
  ...{ queuedAt: AT, prompt: 'x' },
}
const CONVERSATION = {
  ...{ id: CONVERSATION_ID, provider: 'claude', model: null, cwd: '~', prompts: 1, queued: 0, running: true },
  ...{ lastRunId: HOSTILE_RUN_ID, lastStatus: 'running', sessionId: null, lastPrompt: 'x', createdAt: AT },
  updatedAt: AT,
}
const INTERRUPTED = { id: HOSTILE_RUN_ID, wasRunning: true, signal: 'INT' }
/** Valid responses to the requests of prompts. */
const PROMPT_RESPONSES: Record<string, object> = {
  'prompt.started': { run: RUN },
  'prompt.queued': { conversationId: CONVERSATION_ID, queued: QUEUED, active: RUN },
  'prompt.list': { runs: [RUN], active: RUN, queued: [QUEUED] },
  'prompt.conversations': { conversations: [CONVERSATION], running: 1, limit: 4 },
  'prompt.status': { run: RUN, stderr: '', stderrTruncated: false, logPath: '/log' },
  'prompt.events': PAGE,
  'prompt.poll': { runs: [PAGE], missing: [], sequence: 1, active: 1 },
  'prompt.interrupted': { ...INTERRUPTED, dequeued: false },
  'prompts.interrupted': {
    ...{ ...INTERRUPTED, dequeued: [HOSTILE_RUN_ID] },
    interrupted: [{ id: HOSTILE_RUN_ID, conversationId: CONVERSATION_ID, signal: 'INT' }],
  },
}
const PROMPT_TYPES: [pattern: RegExp, ...types: string[]][] = [
  [/^POST \/prompts$/, 'prompt.started', 'prompt.queued'],
  [/^GET \/prompts(\?|$)/, 'prompt.list'],
  [/^GET \/prompts\/conversations$/, 'prompt.conversations'],
  [/^GET \/prompts\/run_\w+$/, 'prompt.status'],
  [/^GET \/prompts\/run_\w+\/events/, 'prompt.events'],
  [/^POST \/prompts\/poll$/, 'prompt.poll'],
  [/^POST \/prompts\/run_\w+\/interrupt$/, 'prompt.interrupted'],
  [/^POST \/prompts\/interrupt/, 'prompts.interrupted'],
]

/** Replaces the value of each field at the given depth. */
function replaceFields(data: unknown, value: unknown, depth: number): unknown {
  if (depth === 0) return value
  if (Array.isArray(data)) return data.map((item) => replaceFields(item, value, depth))
  if (typeof data !== 'object' || data === null) return data
  return Object.fromEntries(
    Object.entries(data).map(([field, item]) => [field, replaceFields(item, value, depth - 1)]),
  )
}

/** The response of the type that the request has, with the value in all fields at a depth. undefined: no prompt request. */
function createPromptBody(request: string, value: unknown, index: number): string | undefined {
  const [, ...types] = PROMPT_TYPES.find(([pattern]) => pattern.test(request)) ?? []
  const type = types[index % types.length]
  if (type === undefined) return undefined
  const fields = replaceFields(PROMPT_RESPONSES[type], value, 1 + (index % 3)) as object
  return JSON.stringify({ ok: true, type: type.replace('prompts.', 'prompt.'), ...fields })
}

const TYPES = [
  ...['exec.result', 'exec.started', 'exec.list', 'exec.status', 'exec.killed'],
  ...['file.read', 'file.written', 'file.uploaded'],
]

export type HostileContext = { url: string; box: BoxIdentity }
export type HostileResponse = (request: HostileRequest, context: HostileContext) => void

/** Opens the connection that the coordinator expects, or one with another id, and sends `body`. */
function sendTransfer(
  { headers }: HostileRequest,
  { url, box }: HostileContext,
  extra: Record<string, string>,
  body: Buffer,
) {
  const id = String(headers[DIAL_BACK_HEADER] ?? 'unknown')
  for (const [path, method] of [
    [id, 'PUT'],
    [id, 'GET'],
    ['unknown', 'PUT'],
    ['../tunnel', 'GET'],
  ]) {
    const request = httpRequest(url + TRANSFER_PATH_PREFIX + path, {
      method,
      headers: { authorization: `Bearer ${box.token}`, [BOX_HEADER]: box.boxId, ...extra },
    })
    request.on('error', () => undefined)
    request.on('response', (response) => response.on('error', () => undefined).resume())
    request.end(method === 'PUT' ? body : undefined)
  }
}

/** Opens the dial-back connection of a stream. */
export function openStreamSocket(url: string, box: BoxIdentity, id: string): WebSocket {
  const ws = new WebSocket(url.replace('http', 'ws') + STREAM_PATH_PREFIX + id, {
    headers: { authorization: `Bearer ${box.token}`, [BOX_HEADER]: box.boxId },
  })
  ws.on('error', () => undefined)
  return ws
}

/** Accepts the dial-back connection of a stream, and sends messages on it. */
const streamOf =
  (send: (ws: WebSocket) => void): HostileResponse =>
  (request, { url, box }) => {
    request.respond(200)
    const ws = openStreamSocket(url, box, request.headers[DIAL_BACK_HEADER] ?? 'unknown')
    ws.once('open', () => send(ws))
  }

/** Responds to each request of a stream of events with the same page. */
function respondWithPage(request: HostileRequest, page: object): void {
  const bodies: Record<string, object> = {
    '/prompts': { type: 'prompt.list', ...PROMPT_RESPONSES['prompt.list'] },
    '/prompts/poll': { type: 'prompt.poll', runs: [page], missing: [], sequence: 1, active: 1 },
  }
  const body = bodies[request.path] ?? { type: 'prompt.events', ...page }
  request.respond(200, JSON.stringify({ ok: true, ...body }))
}

const OK = { type: 'response', status: 200 }

export const HOSTILE_RESPONSES: Record<string, HostileResponse> = {
  ...Object.fromEntries(
    VALUES.map((value, index): [string, HostileResponse] => [
      `value ${index} in every field`,
      (request) => {
        const promptBody = createPromptBody(`${request.method} ${request.path}`, value, index)
        if (promptBody !== undefined) return request.respond(200, promptBody)
        const type = request.method === 'DELETE' ? 'exec.killed' : TYPES[index % TYPES.length]
        request.respond(200, createBody(type ?? '', value))
      },
    ]),
  ),
  'another process': (request) =>
    request.respond(
      200,
      JSON.stringify({ ok: true, type: 'exec.killed', processId: OTHER_ID, wasRunning: true, signal: null }),
    ),
  'another run': (request) =>
    request.respond(
      200,
      JSON.stringify({
        ...{ ok: true, type: 'prompt.interrupted', ...INTERRUPTED, dequeued: false },
        id: OTHER_ID.replace('p_', 'run_'),
      }),
    ),
  'events without an end': (request) => respondWithPage(request, PAGE),
  'empty pages without an end': (request) => respondWithPage(request, { ...PAGE, events: [], next: 0 }),
  'not JSON': (request) => request.respond(200, 'hello'),
  'random bytes': (request) => request.respond(200, randomBytes(100_000)),
  'no body': (request) => request.respond(200),
  'a large error': (request) =>
    request.respond(
      404,
      JSON.stringify({ ok: false, error: { code: 'not_found', message: 'x'.repeat(MiB) } }),
    ),
  'an error with an unknown code': (request) =>
    request.respond(500, JSON.stringify({ ok: false, error: { code: 'internal_error', message: '\0' } })),
  'an unknown status': (request) => request.respond(599, '{}'),
  'a huge head': (request) => request.send({ ...OK, more: 'x'.repeat(200_000) }, '{}'),
  'a head with many values': (request) => request.send({ ...OK, more: Array(300).fill(0) }, '{}'),
  'a response and its size': (request) => request.send({ ...OK, size: 100_000 }, 'x'.repeat(100)),
  'a size that is not a number': (request) => request.send({ ...OK, size: '1e9' }),
  'a size of many GiB': (request) => request.send({ ...OK, size: 2 ** 50 }),
  'a size without chunks': (request) => request.send({ ...OK, size: 100_000 }),
  'chunks that were not requested': (request) => {
    request.send({ ...OK, size: 100_000 })
    for (let i = 0; i < 100; i++) request.send({ type: 'chunk' }, 'x'.repeat(60_000))
  },
  'empty chunks': (request) => {
    request.send({ ...OK, size: 100_000 })
    for (let i = 0; i < 100; i++) request.send({ type: 'chunk' })
  },
  'a window that was not requested': (request) => request.send({ type: 'window', bytes: 2 ** 50 }),
  'two responses': (request) => {
    request.send({ ...OK, size: 100_000 })
    request.send({ ...OK, size: 100_000 })
  },
  'a response of an earlier version': (request) => request.send({ ...OK, isStored: true }),
  'no response': () => undefined,
  'a reset': (request) => request.send({ type: 'reset' }),
  'a download without its content': (request) =>
    request.respond(200, JSON.stringify({ status: 200, headers: { 'x-service-path': '/a' } })),
  'headers of a download': (request, context) => {
    request.respond(200)
    const headers = {
      'x-service-path': `/a${'b'.repeat(5000)}`,
      'x-service-content': 'file',
      'content-type': 'text/html',
      'set-cookie': 'a=b',
    }
    sendTransfer(request, context, headers, Buffer.from('x'))
  },
  'a transfer that no route expects': (request, context) => {
    request.respond(200)
    sendTransfer(
      request,
      context,
      { 'x-service-path': '/a\u00e9', 'content-length': '3' },
      Buffer.from('abc'),
    )
  },
  'an incomplete transfer': (request, context) => {
    request.respond(200)
    sendTransfer(request, context, { 'x-service-path': '/a', 'content-length': '1000' }, Buffer.from('abc'))
  },
  'a stream of random bytes': streamOf((ws) => {
    for (let i = 0; i < 100; i++) ws.send(randomBytes(1000))
  }),
  'a stream of heartbeats': streamOf((ws) => {
    ws.send(
      '{"event":"attached","processId":"p_0123456789abcdef01234567","stdoutOffset":0,"stderrOffset":0}\n',
      {
        binary: true,
      },
    )
    for (let i = 0; i < 10_000; i++)
      ws.send('{"event":"heartbeat","stdoutOffset":0,"stderrOffset":0}\n', { binary: true })
  }),
  'a stream of pings': streamOf((ws) => {
    for (let i = 0; i < 10_000; i++) ws.ping()
  }),
  'a stream with a large message': streamOf((ws) => ws.send(Buffer.alloc(MiB))),
  'a stream of text': streamOf((ws) => ws.send('hello')),
}

/** Responses of many MiB, which are complete only after some time. */
export const LARGE_RESPONSES: Record<string, HostileResponse> = {
  'deep nesting': (request) => request.respond(200, '['.repeat(10 * MiB)),
  'millions of values': (request) =>
    request.respond(200, `{"ok":true,"type":"exec.list","processes":[${'0,'.repeat(5 * MiB)}0]}`),
  'an event with a million values': (request) => {
    const event = JSON.stringify(EVENT).replace('{"line":1}', `[${'0,'.repeat(MiB)}0]`)
    request.respond(
      200,
      `{"ok":true,"type":"prompt.events","run":${JSON.stringify(RUN)},"events":[${event}],"next":1,"finished":false}`,
    )
  },
  'too many bytes': (request) => request.respond(200, Buffer.alloc(20 * MiB, 'x')),
}

const ID = 'p_0123456789abcdef01234567'
const REPORTS: object[] = [
  { type: 'agent.started', at: 1, instanceId: 'i', bootId: 'b', agentVersion: 'v' },
  {
    type: 'command.started',
    commandId: ID,
    claimsToken: 'forged',
    command: 'true',
    commandTruncated: false,
    cwd: '~',
    pid: 1,
    startedAt: 1_700_000_000_000,
  },
  { type: 'command.output', commandId: ID, stream: 'stdout', offset: 0, data: 'eA==' },
  {
    type: 'command.finished',
    commandId: ID,
    status: 'exited',
    exitCode: 0,
    signal: null,
    finishedAt: 1_700_000_000_000,
    stdoutBytes: 0,
    stderrBytes: 0,
  },
]

/** The lines of reports of every type with a wrong value in each field, which the coordinator skips. */
export function createHostileReports(): string[] {
  const values = VALUES.map((value) => (value === VALUES[7] ? 'x'.repeat(200_000) : value)).filter(
    (value) => !(Array.isArray(value) && value.length > 0),
  )
  const reports = REPORTS.flatMap((report) => [
    report,
    ...Object.keys(report).flatMap((field) => values.map((value) => ({ ...report, [field]: value }))),
  ])
  return reports
    .filter((report) => typeof (report as { type: unknown }).type === 'string')
    .map((report, index) => `${JSON.stringify({ type: 'report', epoch: 'e', seq: index + 1, report })}\n`)
}

/** Lines that close the connection. */
export const CLOSING_LINES: string[] = [
  'hello\n',
  'null\n',
  '[]\n',
  `${'x'.repeat(300_000)}\n`,
  `{"type":"heartbeat","vitals":${'['.repeat(1000)}\n`,
  '{"type":"heartbeat","at":1,"vitals":{"cpu_pct":1e308}}\n',
  '{"type":"report","epoch":"e","seq":9007199254740993,"report":{"type":"x"}}\n',
  `{"type":"report","epoch":"${'e'.repeat(1000)}","seq":1,"report":{"type":"x"}}\n`,
]
