// Attached commands of a fake coordinator: real processes, and WebSockets that fail in configurable ways.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { resolve } from 'node:path'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { type ClientMessage, parseClientMessage, type ServerMessage } from '../../shared/api/attach.ts'
import type { ExecRequest } from '../../shared/api/exec.ts'
import type { ExecKilled, ExecStarted } from '../../shared/api/processes.ts'
import { ATTACH_LIMITS, encodeChunk, type OutputChannel } from '../../shared/attach-format.ts'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import type { FakeTerminals } from './fake-terminal.ts'

/** How one connection fails. `afterBytes` counts the bytes of the TCP connection, including the handshake. */
export type AttachFault =
  | {
      kind: 'error_response'
      code: ConstructorParameters<typeof ApiError>[0]
      headers?: Record<string, string>
    }
  | { kind: 'bad_gateway' }
  | { kind: 'reset' }
  /** A late response. */
  | { kind: 'delay'; until: Promise<void> }
  /** No response. */
  | { kind: 'hang' }
  /** The connection is reset when this many bytes have been sent to the client, or received from it. */
  | { kind: 'cut_sent' | 'cut_received'; afterBytes: number }
  /** The server sends this message instead of the first output, and closes the connection. */
  | { kind: 'message'; message: ServerMessage }
  /** The server sends only what `run` sends. */
  | { kind: 'script'; run(ws: WebSocket): void }

export type AttachedCommand = {
  id: string
  request: ExecRequest
  child: ChildProcessWithoutNullStreams
  /** Types of the messages of clients, except bytes of stdin. */
  messages: ClientMessage['type'][]
  connections: number
  isDetached: boolean
  /** Bytes of output that no client has acknowledged. */
  getRetainedBytes(): number
  /** Accepted bytes of stdin. */
  getStdinOffset(): number
}

export type AttachedCommands = {
  all: AttachedCommand[]
  /** The command that was started last. */
  get last(): AttachedCommand
  /** The number of connections, of all commands. */
  connections: number
  /** Called for each connection; the first one is 0. */
  getFault: (connection: number) => AttachFault | null
  start(request: ExecRequest, homeDir: string): ExecStarted
  kill(id: string): ExecKilled
  /** `path` is /exec/{processId}/attach?… or /terminal?… */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, path: string): void
  closeConnections(): void
  /** Sends a ping to each client. Resolves when all have responded. */
  pingClients(): Promise<void>
  /** Also kills the commands. */
  close(): void
}

type Session = ReturnType<typeof startCommand>

export function createAttachedCommands(terminals: FakeTerminals): AttachedCommands {
  const server = new WebSocketServer({ noServer: true, maxPayload: ATTACH_LIMITS.chunkBytes + 1 })
  const sessions: Session[] = []
  const sockets = new Set<Duplex>()
  const find = (id: string): Session => {
    const session = sessions.find(({ command }) => command.id === id)
    if (session === undefined) throw new ApiError('not_found')
    return session
  }

  const commands: AttachedCommands = {
    all: [],
    get last() {
      const last = commands.all.at(-1)
      if (last === undefined) throw new Error('no command was started')
      return last
    },
    connections: 0,
    getFault: () => null,
    start(request, homeDir) {
      const session = startCommand(request, homeDir)
      sessions.push(session)
      commands.all.push(session.command)
      const { id, child } = session.command
      const startedAt = new Date().toISOString()
      return {
        ok: true,
        type: 'exec.started',
        processId: id,
        pid: child.pid ?? 0,
        cwd: '~',
        startedAt,
        logPath: '/log',
      }
    },
    kill(id) {
      const { command } = find(id)
      const wasRunning = command.child.exitCode === null && command.child.signalCode === null
      killGroup(command.child)
      return { ok: true, type: 'exec.killed', processId: id, wasRunning, signal: wasRunning ? 'TERM' : null }
    },
    handleUpgrade(request, socket, head, path) {
      const fault = commands.getFault(commands.connections++)
      socket.on('error', () => undefined)
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
      if (fault?.kind === 'reset') return void socket.destroy()
      if (fault?.kind === 'hang') return
      if (fault?.kind === 'delay')
        return void fault.until.then(() => commands.handleUpgrade(request, socket, head, path))
      if (fault?.kind === 'bad_gateway') return respond(socket, 502, '<html>bad gateway</html>')
      try {
        if (fault?.kind === 'error_response') throw new ApiError(fault.code, 'Try again later.')
        const query = Object.fromEntries(new URLSearchParams(path.split('?')[1]))
        const terminal = path.startsWith('/terminal') ? terminals.find(query.session) : null
        const [, id = ''] = /^\/exec\/([^/]+)\/attach\?(.*)$/.exec(path) ?? []
        const session = terminal === null ? find(id) : null
        if (session?.command.isDetached) throw new ApiError('invalid_request', 'The command is detached.')
        if (fault?.kind === 'cut_sent') cutAfterSending(socket, fault.afterBytes)
        if (fault?.kind === 'cut_received') cutAfterReceiving(socket, fault.afterBytes)
        if (session !== null) session.command.connections++
        server.handleUpgrade(request, socket, head, (ws) => {
          if (fault?.kind === 'script') return fault.run(ws)
          if (terminal !== null) return terminals.attach(ws, terminal, query)
          const { stdoutOffset, stderrOffset } = query
          const offsets = { stdout: Number(stdoutOffset), stderr: Number(stderrOffset) }
          session?.attach(ws, offsets, fault?.kind === 'message' ? fault.message : null)
        })
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        const headers = fault?.kind === 'error_response' ? fault.headers : undefined
        respond(socket, error.status, JSON.stringify(edgeErrorBody(error)), headers)
      }
    },
    async pingClients() {
      const pongs = [...server.clients].map((ws) => {
        ws.ping()
        return once(ws, 'pong')
      })
      await Promise.all(pongs)
    },
    closeConnections() {
      for (const socket of sockets) socket.destroy()
    },
    close() {
      for (const { command } of sessions) killGroup(command.child)
      commands.closeConnections()
    },
  }
  return commands
}

function respond(socket: Duplex, status: number, body: string, headers: Record<string, string> = {}): void {
  const lines = Object.entries({ ...headers, 'content-length': Buffer.byteLength(body), connection: 'close' })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.end(`HTTP/1.1 ${status} Error\r\n${head}\r\n${body}`)
}

function cutAfterSending(socket: Duplex, afterBytes: number): void {
  const write = socket.write.bind(socket) as (chunk: Buffer, callback?: () => void) => boolean
  let left = afterBytes
  const writeUntilCut = (chunk: Buffer | string, ...rest: unknown[]): boolean => {
    const bytes = Buffer.from(chunk as Buffer)
    const callback = rest.find((argument) => typeof argument === 'function') as (() => void) | undefined
    left -= bytes.length
    if (left >= 0) return write(bytes, callback)
    if (left + bytes.length > 0) write(bytes.subarray(0, left + bytes.length), () => socket.destroy())
    else socket.destroy()
    left = Math.min(left, 0)
    return false
  }
  socket.write = writeUntilCut as typeof socket.write
}

function cutAfterReceiving(socket: Duplex, afterBytes: number): void {
  let left = afterBytes
  socket.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) socket.destroy()
  })
}

/** As the agent does, also terminates a process that the command starts meanwhile. */
function killGroup(child: ChildProcessWithoutNullStreams): void {
  const { pid, exitCode, signalCode } = child
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  process.kill(-pid, 'SIGTERM')
  setTimeout(() => killGroup(child), KILL_INTERVAL_MS).unref()
}

const KILL_INTERVAL_MS = 1000

/** Output beyond this number of unacknowledged bytes stays in the pipe. */
const RETAINED_BYTES = ATTACH_LIMITS.outputWindowBytes

function startCommand(request: ExecRequest, homeDir: string) {
  const child = spawn('sh', ['-c', request.command], {
    cwd: resolve(homeDir, request.cwd ?? ''),
    env: { ...process.env, HOME: homeDir, ...request.env },
    detached: true,
  })
  const end = { stdout: 0, stderr: 0 }
  let chunks: { channel: OutputChannel; bytes: Buffer; start: number }[] = []
  let stdinOffset = 0
  let isStdinClosed = request.stdin !== true
  let exit: ServerMessage | null = null
  let timedOut = false
  let client: { notify(): void; send(message: ServerMessage): void; close(): void } | null = null
  let disconnectTimer: NodeJS.Timeout | undefined
  const command: AttachedCommand = {
    id: `p_00000000${randomBytes(8).toString('hex')}`,
    request,
    child,
    messages: [],
    connections: 0,
    isDetached: false,
    getRetainedBytes,
    getStdinOffset: () => stdinOffset,
  }

  function getRetainedBytes(): number {
    return chunks.reduce((total, { bytes }) => total + bytes.length, 0)
  }
  function controlFlow(): void {
    const isFull = getRetainedBytes() >= RETAINED_BYTES
    for (const channel of ['stdout', 'stderr'] as const) child[channel][isFull ? 'pause' : 'resume']()
  }
  for (const channel of ['stdout', 'stderr'] as const)
    child[channel].on('data', (bytes: Buffer) => {
      chunks.push({ channel, bytes, start: end[channel] })
      end[channel] += bytes.length
      controlFlow()
      client?.notify()
    })
  const closeStdin = () => {
    if (!isStdinClosed) client?.send({ type: 'stdinClosed' })
    isStdinClosed = true
  }
  child.stdin.on('error', closeStdin)
  if (isStdinClosed) child.stdin.end()
  const timer =
    request.timeoutSeconds === undefined
      ? undefined
      : setTimeout(() => {
          timedOut = true
          killGroup(child)
        }, request.timeoutSeconds * 1000)
  child.once('close', (exitCode: number | null, signal: string | null) => {
    clearTimeout(timer)
    exit = {
      type: 'exit',
      status: exitCode === null ? 'killed' : 'exited',
      exitCode,
      signal: signal?.slice(3) ?? null,
      timedOut,
      stdoutOffset: end.stdout,
      stderrOffset: end.stderr,
    }
    client?.notify()
  })
  const startDisconnectTimer = () => {
    disconnectTimer = setTimeout(
      () => killGroup(child),
      (request.disconnectTimeoutSeconds ?? 60) * 1000,
    ).unref()
  }
  startDisconnectTimer()

  function attach(
    ws: WebSocket,
    offsets: { stdout: number; stderr: number },
    fault: ServerMessage | null,
  ): void {
    client?.close()
    clearTimeout(disconnectTimer)
    let unacknowledged = 0
    let isExitSent = false
    const sent = { ...offsets }
    const acknowledge = ({ stdout, stderr }: typeof offsets) => {
      const acknowledged = { stdout, stderr }
      chunks = chunks.filter(({ channel, bytes, start }) => start + bytes.length > acknowledged[channel])
      unacknowledged = sent.stdout + sent.stderr - stdout - stderr
      controlFlow()
    }
    const send = (message: ServerMessage) => ws.send(JSON.stringify(message))
    function notify(): void {
      if (ws.readyState !== ws.OPEN) return
      for (const { channel, bytes, start } of chunks) {
        const unsent = bytes.subarray(Math.max(0, sent[channel] - start))
        if (unsent.length === 0) continue
        if (unacknowledged + unsent.length > ATTACH_LIMITS.outputWindowBytes) return
        unacknowledged += unsent.length
        sent[channel] += unsent.length
        for (let at = 0; at < unsent.length; at += ATTACH_LIMITS.chunkBytes)
          ws.send(encodeChunk(channel, unsent.subarray(at, at + ATTACH_LIMITS.chunkBytes)))
      }
      if (exit === null || isExitSent) return
      isExitSent = true
      send(exit)
    }
    ws.on('error', () => undefined)
    ws.once('close', () => {
      if (client?.notify !== notify) return
      client = null
      startDisconnectTimer()
    })
    ws.on('message', (data, isBinary) => {
      const message = parseClientMessage(data as Buffer, isBinary)
      if (message.type === 'stdinBytes') {
        if (isStdinClosed) return
        const { length } = message.bytes
        child.stdin.write(message.bytes, (error) => {
          if (error) return closeStdin()
          stdinOffset += length
          client?.send({ type: 'stdin', offset: stdinOffset })
        })
        return
      }
      command.messages.push(message.type)
      if (message.type === 'ack') {
        acknowledge({ stdout: message.stdoutOffset, stderr: message.stderrOffset })
        notify()
      }
      if (message.type === 'stdinEnd') child.stdin.end()
      if (message.type === 'detach') {
        command.isDetached = true
        clearTimeout(disconnectTimer)
      }
      if (message.type === 'detach' || message.type === 'exitReceived') ws.close(1000)
    })
    acknowledge(offsets)
    if (fault !== null) {
      send({
        type: 'attached',
        processId: command.id,
        stdinOffset,
        stdoutOffset: sent.stdout,
        stderrOffset: sent.stderr,
      })
      send(fault)
      ws.close(1011)
      return
    }
    client = { notify, send, close: () => ws.close(1000) }
    send({
      type: 'attached',
      processId: command.id,
      stdinOffset,
      stdoutOffset: sent.stdout,
      stderrOffset: sent.stderr,
    })
    if (isStdinClosed && request.stdin) send({ type: 'stdinClosed' })
    notify()
  }
  return { command, attach }
}
