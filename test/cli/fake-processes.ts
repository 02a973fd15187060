// Detached processes as the edge of a fake coordinator shows them, with streams that misbehave as they are told to.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ExecStarted, parseEventId, type StreamEvents } from '../../shared/api/processes.ts'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { type FakeCoordinator, json } from './fake-coordinator.ts'
import { createRandom } from './random.ts'

type Offsets = { stdout: number; stderr: number }

/** What one connection of a stream does. The bytes are those of the answer's body. */
export type Fault =
  | { kind: 'refusal'; code: ConstructorParameters<typeof ApiError>[0]; headers?: Record<string, string> }
  | { kind: 'proxy' }
  | { kind: 'reset' }
  | Break

type Break = { kind: 'cut' | 'end' | 'reconnect' | 'error'; afterBytes: number; backBytes?: number }

export type FakeProcess = {
  id: string
  command: string
  stdout: Buffer
  stderr: Buffer
  /** The first byte that is still kept. */
  kept: Offsets
  end: Pick<StreamEvents['exit'], 'status' | 'exitCode' | 'signal'> | null
  /** Asked at each connection, the first of which is 0. */
  fault(connection: number): Fault | null
  connections: number
  /** Bytes of streams that went out. */
  sent: number
}

export type FakeProcesses = {
  add(fields?: Partial<FakeProcess>): FakeProcess
}

const NOW = '2030-01-01T00:00:00.000Z'

/** One box's processes are every box's. */
export function fakeProcesses(fake: FakeCoordinator): FakeProcesses {
  const processes: FakeProcess[] = []
  const find = (id: string): FakeProcess => {
    const found = processes.find((process) => process.id === id)
    if (found === undefined) throw new ApiError('not_found')
    return found
  }
  const add: FakeProcesses['add'] = (fields) => {
    const process = { ...NEW, id: `p_${randomBytes(12).toString('hex')}`, ...fields }
    processes.unshift(process)
    return process
  }
  fake.serve([
    [
      /^GET \/v1\/box\/fig\/exec$/,
      async (_, response) =>
        json(response, { ok: true, type: 'exec.list', processes: processes.map(fieldsOf) }),
    ],
    [
      /^DELETE \/v1\/box\/fig\/exec\/([^/]+)$/,
      async (_, response, [, id = '']) => {
        const process = find(id)
        const wasRunning = process.end === null
        const signal = process.command.startsWith('trap') ? 'KILL' : 'TERM'
        process.end ??= { status: 'killed', exitCode: null, signal }
        json(response, {
          ok: true,
          type: 'exec.killed',
          processId: id,
          wasRunning,
          signal: wasRunning ? signal : null,
        })
      },
    ],
    [
      /^GET \/v1\/box\/fig\/exec\/([^/]+)\/stream\?encoding=base64$/,
      async (request, response, [, id = '']) => stream(find(id), request, response),
    ],
  ])
  return { add }
}

/** For FakeCoordinator.answerNext: a detached start. */
export const startedAs =
  (processId: string, seen: (request: unknown) => void) =>
  async (response: ServerResponse, request: IncomingMessage): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    seen(JSON.parse(Buffer.concat(chunks).toString()))
    const answer: ExecStarted = {
      ok: true,
      type: 'exec.started',
      processId,
      pid: 7,
      cwd: '~',
      startedAt: NOW,
      logPath: '/home/user/.log',
    }
    json(response, answer)
  }

const NEW: FakeProcess = {
  id: '',
  command: 'make world',
  stdout: Buffer.alloc(0),
  stderr: Buffer.alloc(0),
  kept: { stdout: 0, stderr: 0 },
  end: { status: 'exited', exitCode: 0, signal: null },
  fault: () => null,
  connections: 0,
  sent: 0,
}

const fieldsOf = ({ id, command, end }: FakeProcess) => ({
  processId: id,
  pid: 7,
  running: end === null,
  lost: end?.status === 'lost',
  exitCode: end?.exitCode ?? null,
  signal: end?.signal ?? null,
  startedAt: NOW,
  command,
})

async function stream(
  process: FakeProcess,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const fault = process.fault(process.connections)
  process.connections += 1
  if (fault?.kind === 'reset') return void request.socket.destroy()
  if (fault?.kind === 'proxy') return void response.writeHead(502).end('<html>Bad Gateway</html>')
  if (fault?.kind !== 'refusal') return sendEvents(process, request, response, fault)
  const refusal = new ApiError(fault.code, 'Not now, mañana.')
  for (const [name, value] of Object.entries(fault.headers ?? {})) response.setHeader(name, value)
  json(response, edgeErrorBody(refusal), refusal.status)
}

async function sendEvents(
  process: FakeProcess,
  request: IncomingMessage,
  response: ServerResponse,
  fault: Break | null,
): Promise<void> {
  const random = createRandom(process.connections)
  const back = fault?.backBytes ?? 0
  const asked = parseEventId(String(request.headers['last-event-id']))
  const at = {
    stdout: Math.max(0, Math.min(asked.stdout, process.stdout.length) - back),
    stderr: Math.max(0, Math.min(asked.stderr, process.stderr.length) - back),
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })

  /** In pieces as the network makes them, whatever they halve. */
  async function send(bytes: Buffer): Promise<void> {
    for (let from = 0; from < bytes.length && !response.destroyed; ) {
      const piece = bytes.subarray(from, from + 1 + random.below(20_000))
      from += piece.length
      process.sent += piece.length
      if (!response.write(piece)) await room(response)
    }
  }

  let left = fault?.afterBytes ?? Number.POSITIVE_INFINITY
  for (const event of eventsOf(process, at, random.below)) {
    const bytes = Buffer.from(event)
    if (fault !== null && bytes.length > left) {
      const { kind } = fault
      if (kind === 'cut' || kind === 'end') await send(bytes.subarray(0, left))
      if (kind === 'cut') return void response.write('', () => response.destroy())
      if (kind === 'reconnect')
        await send(Buffer.from(frame(kind, at, { stdoutOffset: at.stdout, stderrOffset: at.stderr })))
      if (kind === 'error')
        await send(Buffer.from(frame(kind, at, { code: 'box_unreachable', message: 'abgerissen: grün 🌳' })))
      return void response.end()
    }
    await send(bytes)
    if (response.destroyed) return
    left -= bytes.length
  }
  if (process.end !== null) response.end()
}

/** Or it is closed. */
const room = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })

function* eventsOf(
  process: FakeProcess,
  at: Offsets,
  below: (limit: number) => number,
): Generator<string, void, undefined> {
  yield frame('attached', at, { processId: process.id, stdoutOffset: at.stdout, stderrOffset: at.stderr })
  for (;;) {
    const open = (['stdout', 'stderr'] as const).filter((name) => at[name] < process[name].length)
    const name = open[below(Math.max(1, open.length))]
    if (name === undefined) break
    const offset = Math.max(at[name], process.kept[name])
    const bytes = process[name].subarray(offset, offset + 1 + below(48 * 1024))
    at[name] = offset + bytes.length
    yield frame(name, at, { data: bytes.toString('base64'), offset, nextOffset: at[name] })
    if (below(8) === 0) yield frame('heartbeat', at, {})
  }
  if (process.end !== null)
    yield frame('exit', at, { ...process.end, stdoutOffset: at.stdout, stderrOffset: at.stderr })
}

const frame = (name: string, { stdout, stderr }: Offsets, data: object): string =>
  `event: ${name}\nid: ${stdout}:${stderr}\ndata: ${JSON.stringify(data)}\n\n`
