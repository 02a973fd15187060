// One terminal session: a program in a pseudoterminal, its last output, its screen and its attached clients.
import type { TerminalSession } from '../../shared/api/terminal.ts'
import { type Clock, toTimestamp } from '../../shared/clock.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { AttachSocket } from '../attach/attach-socket.ts'
import type { Exit } from '../exec/native-spawn.ts'
import { hangUpTree, type Tree } from '../exec/terminate-tree.ts'
import { readProcess } from '../process-table.ts'
import {
  type AttachOptions,
  type ClientSession,
  createClient,
  OUTPUT_WINDOW_BYTES,
  type TerminalClient,
} from './client.ts'
import type { SessionExit } from './exit-records.ts'
import { createScreenBackup } from './host/screen-backup.ts'
import { createInputQueue } from './input-queue.ts'
import { createOutputRing } from './output-ring.ts'
import type { Pty } from './pty.ts'
import { createScreen } from './screen.ts'

export type SessionOptions = {
  pty: Pty
  name: string
  /** The command as lists show it; null for the login shell. */
  command: string | null
  /** The value of BOXWOOD_PROCESS_ID in the environment of the program. */
  processId: string
  /** The size of a new pseudoterminal. */
  size: { cols: number; rows: number }
  /** Milliseconds since the epoch. */
  startedAt: number
  clock: Clock
  /** Called for input, and for output while a client is attached. */
  onActivity(): void
}

export type Session = {
  readonly name: string
  readonly pid: number
  /** The version of the terminal host; null: the program ends with the agent. */
  readonly hostVersion: number | null
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  /** Resolves after all output. */
  readonly exit: Promise<Exit>
  /** When the program has exited, in milliseconds since the epoch; null: when `exit` resolved. */
  finishedAt(): number | null
  /** Resolves when the output of earlier agents, and an earlier exit, have been read. */
  readonly restored: Promise<void>
  hasExited(): boolean
  /** Whether a client is attached, or a command runs in the foreground. */
  isInUse(): boolean
  describe(): TerminalSession
  /** Serves the client until it disconnects. */
  attach(socket: AttachSocket, options: AttachOptions): void
  /** Whether a client with this id, or any client, has been attached. */
  hadClient(id?: string): boolean
  /** How the session has exited; null while it runs. */
  describeExit(): SessionExit | null
  /** SIGHUP, SIGTERM and SIGKILL to the program and its descendants. @param graceMs after each of the first two */
  kill(graceMs?: number): ReturnType<typeof hangUpTree>
  /** Leaves the program to the next agent. False when it ends with this one. */
  disconnect(): boolean
  /** Call after the exit, when no client needs the session any more. */
  release(): Promise<void>
}

/** Twice the window: a client that reconnects can resume at its offset. */
const RING_BYTES = 2 * OUTPUT_WINDOW_BYTES
/** The program is paused while the screen lags behind by more bytes than this. */
const UNPARSED_BYTES = 256 * 1024
const LISTED_COMMAND_CHARS = 2048

/** The shell leads its own process group, and gives each command another one. */
function runsForegroundCommand(shellPid: number): boolean {
  const foregroundGroup = readProcess(shellPid)?.foregroundGroup
  return foregroundGroup !== undefined && foregroundGroup !== shellPid
}

export function createSession(options: SessionOptions): Session {
  const { pty, name, command, processId, clock, onActivity, startedAt } = options
  const { host } = pty
  const size = { ...(host?.size ?? options.size) }
  const first = { offset: host?.screen?.offset ?? host?.offset ?? 0, screen: host?.screen ?? null }
  const ring = createOutputRing(RING_BYTES, host?.offset)
  const screen = createScreen(size, onParsed, first)
  const screenBackup = host && createScreenBackup(host, screen)
  const clients = new Set<TerminalClient>()
  let hadAnyClient = (host?.clients.size ?? 0) > 0
  let exit: Exit | null = null
  let lastActiveAt = clock.now()
  const tree: Tree = { pid: pty.pid, startTime: pty.startTime, processId }
  const input = createInputQueue(pty.write, host?.clients)

  pty.start((bytes) => {
    lastActiveAt = clock.now()
    if (clients.size > 0) onActivity()
    // A restored screen contains the output before its offset.
    const unseen = bytes.subarray(Math.max(0, first.offset - ring.end()))
    ring.push(bytes)
    screen.write(unseen)
    controlFlow()
    for (const client of clients) client.onChange()
  })

  function onParsed(): void {
    screenBackup?.onParsed()
    controlFlow()
  }

  /** Pauses the program while the screen or all clients lag behind. */
  function controlFlow(): void {
    const lags = [...clients].map((client) => ring.end() - client.acknowledged())
    const lag = clients.size > 0 ? Math.min(...lags) : 0
    host?.setNeededOffset(ring.end() - lag)
    const isFlooding = lag >= OUTPUT_WINDOW_BYTES
    if (isFlooding || screen.pendingBytes() > UNPARSED_BYTES) pty.pause()
    else pty.resume()
  }

  function resize(cols: number, rows: number): void {
    if (exit !== null || (cols === size.cols && rows === size.rows)) return
    Object.assign(size, { cols, rows })
    screen.resize(cols, rows)
    pty.resize(cols, rows)
    screenBackup?.onResize()
    for (const client of clients) client.onChange()
  }

  const clientSession: Omit<ClientSession, 'stdin'> = {
    name,
    start: ring.start,
    end: ring.end,
    read: ring.read,
    resize,
    size: () => size,
    exit: () => exit,
    snapshot() {
      const snapshot = screen.snapshot()
      // An escape sequence that is longer than the ring is cut.
      return { ...snapshot, offset: Math.max(snapshot.offset, ring.start()) }
    },
    onInput() {
      lastActiveAt = clock.now()
      onActivity()
    },
    onAcknowledge: controlFlow,
  }

  const exited = pty.exit.then((result) => {
    exit = result
    screenBackup?.close()
    for (const client of clients) client.onChange()
    return result
  })

  return {
    name,
    pid: pty.pid,
    hostVersion: host?.version ?? null,
    startedAt,
    exit: exited,
    finishedAt: () => host?.finishedAt() ?? null,
    restored: host?.replayed ?? Promise.resolve(),
    hasExited: () => exit !== null,
    isInUse: () => clients.size > 0 || command !== null || runsForegroundCommand(pty.pid),
    describe: () => ({
      session: name,
      pid: pty.pid,
      command: command === null ? null : command.slice(0, LISTED_COMMAND_CHARS),
      ...size,
      clients: Math.min(clients.size, LIMITS.edgeAttachments),
      startedAt: toTimestamp(startedAt),
      lastActiveAt: toTimestamp(lastActiveAt),
    }),
    attach(socket, attachOptions) {
      if (attachOptions.size !== undefined) resize(attachOptions.size.cols, attachOptions.size.rows)
      const stdin = input.open(attachOptions.client)
      if (attachOptions.client !== undefined) host?.addClient(attachOptions.client)
      const client = createClient(socket, attachOptions, { ...clientSession, stdin })
      stdin.onReplaced(() => client.replace())
      clients.add(client)
      hadAnyClient = true
      onActivity()
      const detach = () => {
        clients.delete(client)
        stdin.close()
        controlFlow()
      }
      if (socket.signal.aborted) detach()
      else socket.signal.addEventListener('abort', detach, { once: true })
      controlFlow()
    },
    hadClient: (id) => (id === undefined ? hadAnyClient : input.knows(id)),
    describeExit: () =>
      exit && {
        name,
        startedAt,
        exit,
        stdoutOffset: ring.end(),
        ...size,
        hadClient: hadAnyClient,
        clients: input.listAccepted(),
      },
    kill: (graceMs) => hangUpTree(tree, graceMs),
    disconnect() {
      screenBackup?.close()
      host?.disconnect()
      return host !== null
    },
    release: async () => host?.release(),
  }
}
