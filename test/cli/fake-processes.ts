// Detached processes of a fake coordinator, with event streams that fail in configurable ways.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ExecStarted, StreamEvents } from '../../shared/api/processes.ts'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { parseEventId } from '../../shared/event-id.ts'
import { type FakeCoordinator, type OneTimeHandler, sendJson } from './fake-coordinator.ts'
import { createRandom } from './random.ts'

type Offsets = { stdout: number; stderr: number }

/** How one connection of a stream fails. */
export type Fault =
  | {
      kind: 'error_response'
      code: ConstructorParameters<typeof ApiError>[0]
      headers?: Record<string, string>
    }
  | { kind: 'bad_gateway' }
  | { kind: 'reset' }
  | StreamFault

/**
 * A failure after `afterBytes` bytes of the response body: `disconnect` and `end` send a partial event first.
 * `rewindBytes`: the stream starts this far before the requested position.
 */
type StreamFault = {
  kind: 'disconnect' | 'end' | 'reconnect' | 'error'
  afterBytes: number
  rewindBytes?: number
}

export type FakeProcess = {
  id: string
  command: string
  stdout: Buffer
  stderr: Buffer
  /** The offset of the first byte that is not discarded. */
  firstStoredByte: Offsets
  /** When the output of both streams was written; null: the process has no times. */
  times: { at: string; offset: number }[] | null
  /** null while it is running. */
  exit: (Pick<StreamEvents['exit'], 'status' | 'exitCode' | 'signal'> & { timedOut?: boolean }) | null
  /** Called for each connection; the first one is 0. */
  getFault(connection: number): Fault | null
  connections: number
  /** Bytes of event streams that have been sent. */
  bytesSent: number
}

export type FakeProcesses = {
  add(fields?: Partial<FakeProcess>): FakeProcess
}

const STARTED_AT = '2030-01-01T00:00:00.000Z'

/** The processes are those of the box fig. */
export function addFakeProcesses(fake: FakeCoordinator): FakeProcesses {
  const processes: FakeProcess[] = []
  const findProcess = (id: string): FakeProcess => {
    const process = processes.find((process) => process.id === id)
    if (process === undefined) throw new ApiError('not_found')
    return process
  }
  const add: FakeProcesses['add'] = (fields) => {
    const process = { ...NEW_PROCESS, id: `p_${randomBytes(12).toString('hex')}`, ...fields }
    processes.unshift(process)
    return process
  }
  fake.addRoutes([
    [
      /^GET \/v1\/box\/fig\/exec$/,
      async (_, response) =>
        sendJson(response, { ok: true, type: 'exec.list', processes: processes.map(toProcessFields) }),
    ],
    [
      /^DELETE \/v1\/box\/fig\/exec\/([^/]+)$/,
      async (_, response, [, id = '']) => {
        const process = findProcess(id)
        const wasRunning = process.exit === null
        const signal = process.command.startsWith('trap') ? 'KILL' : 'TERM'
        process.exit ??= { status: 'killed', exitCode: null, signal }
        sendJson(response, {
          ok: true,
          type: 'exec.killed',
          processId: id,
          wasRunning,
          signal: wasRunning ? signal : null,
        })
      },
    ],
    [
      /^GET \/v1\/box\/fig\/exec\/([^/]+)\/stream\?(encoding=base64.*)$/,
      async (request, response, [, id = '', query]) =>
        handleStream(findProcess(id), new URLSearchParams(query), request, response),
    ],
  ])
  return { add }
}

/** A handler for FakeCoordinator.handleNext: the response to a detached start. */
export const createStartedHandler =
  (processId: string, onRequest: (body: unknown) => void): OneTimeHandler =>
  async (response, request) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    onRequest(JSON.parse(Buffer.concat(chunks).toString()))
    const body: ExecStarted = {
      ok: true,
      type: 'exec.started',
      processId,
      pid: 7,
      cwd: '~',
      startedAt: STARTED_AT,
      logPath: '/home/user/.log',
    }
    sendJson(response, body)
  }

const NEW_PROCESS: FakeProcess = {
  id: '',
  command: 'make world',
  stdout: Buffer.alloc(0),
  stderr: Buffer.alloc(0),
  firstStoredByte: { stdout: 0, stderr: 0 },
  times: null,
  exit: { status: 'exited', exitCode: 0, signal: null },
  getFault: () => null,
  connections: 0,
  bytesSent: 0,
}

const toProcessFields = ({ id, command, exit }: FakeProcess) => ({
  processId: id,
  pid: 7,
  running: exit === null,
  lost: exit?.status === 'lost',
  exitCode: exit?.exitCode ?? null,
  signal: exit?.signal ?? null,
  timedOut: exit?.timedOut ?? false,
  startedAt: STARTED_AT,
  command,
})

async function handleStream(
  process: FakeProcess,
  query: URLSearchParams,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const fault = process.getFault(process.connections)
  process.connections += 1
  if (fault?.kind === 'reset') return void request.socket.destroy()
  if (fault?.kind === 'bad_gateway') return void response.writeHead(502).end('<html>Bad Gateway</html>')
  if (fault?.kind !== 'error_response') return sendEvents(process, query, request, response, fault)
  const error = new ApiError(fault.code, 'Try again later (non-ASCII: ñ).')
  for (const [name, value] of Object.entries(fault.headers ?? {})) response.setHeader(name, value)
  sendJson(response, edgeErrorBody(error), error.status)
}

async function sendEvents(
  process: FakeProcess,
  query: URLSearchParams,
  request: IncomingMessage,
  response: ServerResponse,
  fault: StreamFault | null,
): Promise<void> {
  const random = createRandom(process.connections)
  const rewindBytes = fault?.rewindBytes ?? 0
  const requested = parseEventId(String(request.headers['last-event-id']))
  const position = {
    stdout: Math.max(0, Math.min(requested.stdout, process.stdout.length) - rewindBytes),
    stderr: Math.max(0, Math.min(requested.stderr, process.stderr.length) - rewindBytes),
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })

  /** Writes in pieces of random length, which may split events and characters. */
  async function send(bytes: Buffer): Promise<void> {
    for (let offset = 0; offset < bytes.length && !response.destroyed; ) {
      const piece = bytes.subarray(offset, offset + 1 + random.below(20_000))
      offset += piece.length
      process.bytesSent += piece.length
      if (!response.write(piece)) await waitForDrain(response)
    }
  }

  let bytesLeft = fault?.afterBytes ?? Number.POSITIVE_INFINITY
  for (const bytes of generateEvents(process, query, position, random.below)) {
    if (fault !== null && bytes.length > bytesLeft) {
      const { kind } = fault
      if (kind === 'disconnect' || kind === 'end') await send(bytes.subarray(0, bytesLeft))
      if (kind === 'disconnect') return void response.write('', () => response.destroy())
      const { stdout, stderr } = position
      if (kind === 'reconnect')
        await send(formatEvent(kind, position, { stdoutOffset: stdout, stderrOffset: stderr }))
      if (kind === 'error') {
        // Non-ASCII characters, because send() may split them.
        const message = 'The connection to the box was lost (non-ASCII: ü 🌳).'
        await send(formatEvent(kind, position, { code: 'box_unreachable', message }))
      }
      return void response.end()
    }
    await send(bytes)
    if (response.destroyed) return
    bytesLeft -= bytes.length
  }
  if (process.exit !== null) response.end()
}

/** Also resolves when the response is closed. */
const waitForDrain = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const onDone = () => {
      response.off('drain', onDone).off('close', onDone)
      resolve()
    }
    response.on('drain', onDone).on('close', onDone)
  })

/** Advances `position`. Interleaves stdout, stderr and heartbeats at random. */
function* generateEvents(
  process: FakeProcess,
  query: URLSearchParams,
  position: Offsets,
  below: (limit: number) => number,
): Generator<Buffer, void, undefined> {
  const requested = query.get('streams') ?? 'both'
  const names = (['stdout', 'stderr'] as const).filter((name) => requested === 'both' || requested === name)
  const [since, timestamps] = [query.get('since'), query.get('timestamps') === 'true']
  if (since !== null && process.times !== null) {
    const start = process.times.find(({ at }) => at >= since)?.offset ?? Number.POSITIVE_INFINITY
    for (const name of names) position[name] = Math.max(position[name], Math.min(start, process[name].length))
  }
  yield formatEvent('attached', position, {
    processId: process.id,
    stdoutOffset: position.stdout,
    stderrOffset: position.stderr,
    ...((timestamps || since !== null) && { hasTimes: process.times !== null }),
  })
  for (;;) {
    const unread = names.filter((name) => position[name] < process[name].length)
    const name = unread[below(Math.max(1, unread.length))]
    if (name === undefined) break
    const offset = Math.max(position[name], process.firstStoredByte[name])
    const index = process.times?.findLastIndex((record) => record.offset <= offset) ?? -1
    const end = timestamps
      ? (process.times?.[index + 1]?.offset ?? Number.POSITIVE_INFINITY)
      : Number.POSITIVE_INFINITY
    const bytes = process[name].subarray(offset, Math.min(end, offset + 1 + below(48 * 1024)))
    const nextOffset = offset + bytes.length
    const at = timestamps && { at: process.times?.[index]?.at ?? null }
    position[name] = nextOffset
    yield formatEvent(name, position, { data: bytes.toString('base64'), ...at, offset, nextOffset })
    if (below(8) === 0) yield formatEvent('heartbeat', position, {})
  }
  if (process.exit !== null) {
    const { stdout, stderr } = position
    yield formatEvent('exit', position, { ...process.exit, stdoutOffset: stdout, stderrOffset: stderr })
  }
}

const formatEvent = (name: string, { stdout, stderr }: Offsets, data: object): Buffer =>
  Buffer.from(`event: ${name}\nid: ${stdout}:${stderr}\ndata: ${JSON.stringify(data)}\n\n`)
