// Invalid responses of a hostile agent to the requests of the edge, and invalid reports.
import { randomBytes } from 'node:crypto'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import { WebSocket } from 'ws'
import {
  BOX_HEADER,
  DIAL_BACK_HEADER,
  STREAM_PATH_PREFIX,
  TRANSFER_PATH_PREFIX,
} from '../../shared/protocol.ts'
import type { BoxIdentity } from './hostile-agent.ts'

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

const respond = (stream: ServerHttp2Stream, body: string | Buffer, headers: object = {}) => {
  stream.respond({ ':status': 200, 'content-type': 'application/json', ...headers })
  stream.end(body)
}

export type HostileContext = { url: string; box: BoxIdentity; headers: IncomingHttpHeaders }
export type HostileResponse = (stream: ServerHttp2Stream, context: HostileContext) => void

/** Opens the connection that the coordinator expects, or one with another id, and sends `body`. */
function sendTransfer({ url, box, headers }: HostileContext, extra: Record<string, string>, body: Buffer) {
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

function sendStream({ url, box, headers }: HostileContext, send: (ws: WebSocket) => void) {
  const ws = openStreamSocket(url, box, String(headers[DIAL_BACK_HEADER] ?? 'unknown'))
  ws.once('open', () => send(ws))
}

const acceptDialBack = (stream: ServerHttp2Stream, { headers }: HostileContext) =>
  respond(stream, '', { [DIAL_BACK_HEADER]: headers[DIAL_BACK_HEADER] ?? 'unknown' })

/** Accepts the dial-back connection of a stream, and sends messages on it. */
const streamOf =
  (send: (ws: WebSocket) => void): HostileResponse =>
  (stream, context) => {
    acceptDialBack(stream, context)
    sendStream(context, send)
  }

/** Responds to each request of a stream of events with the same page. */
function respondWithPage(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, page: object): void {
  const bodies: Record<string, object> = {
    '/prompts': { type: 'prompt.list', ...PROMPT_RESPONSES['prompt.list'] },
    '/prompts/poll': { type: 'prompt.poll', runs: [page], missing: [], sequence: 1, active: 1 },
  }
  const body = bodies[String(headers[':path'])] ?? { type: 'prompt.events', ...page }
  respond(stream, JSON.stringify({ ok: true, ...body }))
}

export const HOSTILE_RESPONSES: Record<string, HostileResponse> = {
  ...Object.fromEntries(
    VALUES.map((value, index): [string, HostileResponse] => [
      `value ${index} in every field`,
      (stream, { headers }) => {
        const promptBody = createPromptBody(`${headers[':method']} ${headers[':path']}`, value, index)
        if (promptBody !== undefined) return respond(stream, promptBody)
        const type = headers[':method'] === 'DELETE' ? 'exec.killed' : TYPES[index % TYPES.length]
        respond(stream, createBody(type ?? '', value))
      },
    ]),
  ),
  'another process': (stream) =>
    respond(
      stream,
      JSON.stringify({ ok: true, type: 'exec.killed', processId: OTHER_ID, wasRunning: true, signal: null }),
    ),
  'another run': (stream) =>
    respond(
      stream,
      JSON.stringify({
        ...{ ok: true, type: 'prompt.interrupted', ...INTERRUPTED, dequeued: false },
        id: OTHER_ID.replace('p_', 'run_'),
      }),
    ),
  'events without an end': (stream, { headers }) => respondWithPage(stream, headers, PAGE),
  'empty pages without an end': (stream, { headers }) =>
    respondWithPage(stream, headers, { ...PAGE, events: [], next: 0 }),
  'not JSON': (stream) => respond(stream, 'hello'),
  'random bytes': (stream) => respond(stream, randomBytes(100_000)),
  'no body': (stream) => respond(stream, ''),
  'a large error': (stream) =>
    respond(stream, JSON.stringify({ ok: false, error: { code: 'not_found', message: 'x'.repeat(MiB) } }), {
      ':status': 404,
    }),
  'an error with an unknown code': (stream) =>
    respond(stream, JSON.stringify({ ok: false, error: { code: 'internal_error', message: '\0' } }), {
      ':status': 500,
    }),
  'an unknown status': (stream) => respond(stream, '{}', { ':status': 599 }),
  'huge headers': (stream) => respond(stream, '{}', { 'x-huge': 'x'.repeat(200_000) }),
  'many headers': (stream) =>
    respond(stream, '{}', Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`x-${i}`, 'y']))),
  'many informational headers': (stream) => {
    for (let i = 0; i < 100; i++) stream.additionalHeaders({ ':status': 103 })
    respond(stream, '{}')
  },
  'headers of a download': (stream) =>
    respond(stream, 'x', {
      'x-service-path': `/a${'b'.repeat(5000)}`,
      'x-service-content': 'file',
      'content-type': 'text/html',
      'set-cookie': 'a=b',
    }),
  'the wrong length': (stream) => respond(stream, 'x', { 'x-service-path': '/a', 'content-length': '9' }),
  'a body that never ends': (stream) => {
    stream.respond({ ':status': 200 })
    stream.write('{"ok":')
  },
  'no response': () => undefined,
  'a reset': (stream) => stream.close(2),
  'a transfer that no route expects': (stream, context) => {
    acceptDialBack(stream, context)
    sendTransfer(context, { 'x-service-path': '/a\u00e9', 'content-length': '3' }, Buffer.from('abc'))
  },
  'an incomplete transfer': (stream, context) => {
    acceptDialBack(stream, context)
    sendTransfer(context, { 'x-service-path': '/a', 'content-length': '1000' }, Buffer.from('abc'))
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
  'deep nesting': (stream) => respond(stream, '['.repeat(10 * MiB)),
  'millions of values': (stream) =>
    respond(stream, `{"ok":true,"type":"exec.list","processes":[${'0,'.repeat(5 * MiB)}0]}`),
  'an event with a million values': (stream) => {
    const event = JSON.stringify(EVENT).replace('{"line":1}', `[${'0,'.repeat(MiB)}0]`)
    respond(
      stream,
      `{"ok":true,"type":"prompt.events","run":${JSON.stringify(RUN)},"events":[${event}],"next":1,"finished":false}`,
    )
  },
  'too many bytes': (stream) => respond(stream, Buffer.alloc(20 * MiB, 'x')),
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
