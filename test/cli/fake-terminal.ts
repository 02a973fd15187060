// Terminal sessions of a fake coordinator: real pseudoterminals on this machine.
import { type IPty, spawn } from '@lydell/node-pty'
import type { WebSocket } from 'ws'
import { type ClientMessage, parseClientMessage, type ServerMessage } from '../../shared/api/attach.ts'
import type {
  TerminalKilled,
  TerminalList,
  TerminalSession,
  TerminalStart,
  TerminalStarted,
} from '../../shared/api/terminal.ts'
import { ATTACH_LIMITS, encodeChunk } from '../../shared/attach-format.ts'
import { ApiError } from '../../shared/errors.ts'

export type FakeTerminal = {
  name: string
  request: TerminalStart
  pty: IPty
  /** All output. */
  output: Buffer
  exit: ServerMessage | null
  /** Accepted bytes of stdin by the id of the client. */
  stdinOffsets: Map<string, number>
  messages: ClientMessage['type'][]
  clients: Set<WebSocket>
}

export type FakeTerminals = {
  all: FakeTerminal[]
  /** The queries of all connections. */
  queries: Record<string, string>[]
  start(request: TerminalStart, homeDir: string): TerminalStarted
  list(): TerminalList
  kill(name: string): TerminalKilled
  /** @throws ApiError not_found */
  find(name: string | undefined): FakeTerminal
  attach(ws: WebSocket, terminal: FakeTerminal, query: Record<string, string>): void
  close(): void
}

export function createFakeTerminals(): FakeTerminals {
  const all: FakeTerminal[] = []
  const queries: Record<string, string>[] = []
  const find = (name: string | undefined): FakeTerminal => {
    const terminal = all.findLast((terminal) =>
      name === undefined ? terminal.exit === null : terminal.name === name,
    )
    if (terminal === undefined) throw new ApiError('not_found')
    return terminal
  }

  return {
    all,
    queries,
    find,
    start(request, homeDir) {
      const name = request.session ?? `session-${all.length + 1}`
      if (all.some((terminal) => terminal.name === name && terminal.exit === null))
        throw new ApiError('invalid_request', 'The session is already in use: attach to it.')
      const terminal = startTerminal(name, request, homeDir)
      all.push(terminal)
      return { ok: true, type: 'terminal.started', ...toSessionFields(terminal) }
    },
    list: () => ({
      ok: true,
      type: 'terminal.list',
      sessions: all.filter(({ exit }) => exit === null).map(toSessionFields),
    }),
    kill(name) {
      find(name).pty.kill('SIGHUP')
      return { ok: true, type: 'terminal.killed', session: name, signal: 'HUP' }
    },
    attach(ws, terminal, query) {
      queries.push(query)
      attachClient(ws, terminal, query)
    },
    close() {
      for (const { pty, exit } of all) if (exit === null) pty.kill('SIGKILL')
    },
  }
}

const STARTED_AT = '2030-01-01T00:00:00.000Z'

const toSessionFields = ({ name, pty, request, clients }: FakeTerminal): TerminalSession => ({
  session: name,
  pid: pty.pid,
  command: request.command ?? null,
  cols: pty.cols,
  rows: pty.rows,
  clients: clients.size,
  startedAt: STARTED_AT,
  lastActiveAt: STARTED_AT,
})

function startTerminal(name: string, request: TerminalStart, homeDir: string): FakeTerminal {
  const { command, term = 'xterm-256color', cols = 80, rows = 24, env } = request
  const pty = spawn('/bin/sh', command === undefined ? [] : ['-c', command], {
    name: term,
    cols,
    rows,
    cwd: homeDir,
    env: { ...process.env, ...env, PS1: '$ ' },
    encoding: null,
  })
  const terminal: FakeTerminal = {
    name,
    request,
    pty,
    output: Buffer.alloc(0),
    exit: null,
    stdinOffsets: new Map(),
    messages: [],
    clients: new Set(),
  }
  // With `encoding: null` the data are bytes.
  pty.onData((data) => {
    const bytes = data as unknown as Buffer
    terminal.output = Buffer.concat([terminal.output, bytes])
    for (const ws of terminal.clients) sendOutput(ws, bytes)
  })
  pty.onExit(({ exitCode, signal }) => {
    terminal.exit = {
      type: 'exit',
      status: signal ? 'killed' : 'exited',
      exitCode: signal ? null : exitCode,
      signal: signal === 1 ? 'HUP' : signal ? String(signal) : null,
      timedOut: false,
      stdoutOffset: terminal.output.length,
      stderrOffset: 0,
    }
    for (const ws of terminal.clients) ws.send(JSON.stringify(terminal.exit))
  })
  return terminal
}

function sendOutput(ws: WebSocket, bytes: Buffer): void {
  for (let start = 0; start < bytes.length; start += ATTACH_LIMITS.chunkBytes)
    ws.send(encodeChunk('stdout', bytes.subarray(start, start + ATTACH_LIMITS.chunkBytes)))
}

function attachClient(ws: WebSocket, terminal: FakeTerminal, query: Record<string, string>): void {
  const { client = '', offset, cols, rows } = query
  const send = (message: ServerMessage) => ws.send(JSON.stringify(message))
  const resize = (size: { cols: number; rows: number }) => {
    try {
      if (terminal.exit === null) terminal.pty.resize(size.cols, size.rows)
    } catch {
      // The program has exited, and node-pty emits the event later.
    }
    for (const other of terminal.clients) other.send(JSON.stringify({ type: 'resized', ...size }))
  }
  ws.on('error', () => undefined)
  ws.once('close', () => terminal.clients.delete(ws))
  ws.on('message', (data, isBinary) => {
    const message = parseClientMessage(data as Buffer, isBinary)
    if (message.type !== 'stdinBytes') {
      terminal.messages.push(message.type)
      if (message.type === 'resize') resize(message)
      if (message.type === 'detach' || message.type === 'exitReceived') ws.close(1000)
      return
    }
    const stdinOffset = (terminal.stdinOffsets.get(client) ?? 0) + message.bytes.length
    terminal.stdinOffsets.set(client, stdinOffset)
    terminal.pty.write(message.bytes.toString())
    send({ type: 'stdin', offset: stdinOffset })
  })
  const stdoutOffset = offset === undefined ? terminal.output.length : Number(offset)
  send({
    type: 'attached',
    session: terminal.name,
    isNew: false,
    stdinOffset: terminal.stdinOffsets.get(client) ?? 0,
    stdoutOffset,
    stderrOffset: 0,
  })
  if (offset === undefined) {
    const { length } = terminal.output
    const { cols, rows } = terminal.pty
    send({ type: 'screen', bytes: length, stdoutOffset, stderrOffset: 0, cols, rows })
    sendOutput(ws, terminal.output)
  } else sendOutput(ws, terminal.output.subarray(stdoutOffset))
  terminal.clients.add(ws)
  if (cols !== undefined && rows !== undefined) resize({ cols: Number(cols), rows: Number(rows) })
  if (terminal.exit !== null) send(terminal.exit)
}
