// Runs a program in a pseudoterminal of the agent, with the native addon of node-pty. Its JavaScript part is not used: it discards the
// final output of a program whose terminal is paused, and its write() blocks the event loop.
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { ReadStream } from 'node:tty'
import { ApiError } from '../../shared/errors.ts'
import { type Exit, setCloseOnExec } from '../exec/native-spawn.ts'
import { signalName } from '../exec/signal-name.ts'
import { readProcess } from '../process-table.ts'
import type { InputPosition } from './input-queue.ts'
import type { Snapshot } from './screen.ts'

export type Pty = {
  /** Leader of its session and process group. */
  pid: number
  /** In ticks since boot: another process may get the pid after the exit. */
  startTime: number
  /** Delivers the output from now on. To be called at once. */
  start(onOutput: (bytes: Buffer) => void): void
  /** Resolves when the terminal has accepted the bytes, or the program has exited. Call again only after that. */
  write(bytes: Buffer, from: InputPosition): Promise<void>
  resize(cols: number, rows: number): void
  /** Stops reading, which blocks the program once the kernel's buffer of the terminal is full. */
  pause(): void
  resume(): void
  /** Resolves after all output of the program has been delivered. */
  exit: Promise<Exit>
  /** null: the program is hung up when the agent exits. */
  host: PtyHost | null
}

/** What a terminal host holds for the next agent. */
export type PtyHost = {
  /** Of the host, its messages and the files of the session. */
  version: number
  /** Offset of the first byte of output that start() delivers. */
  offset: number
  /** The stored screen. */
  screen: Snapshot | null
  size: { cols: number; rows: number }
  /** Accepted bytes of the input of each known client. */
  clients: ReadonlyMap<string, number>
  /** Resolves when the output of earlier agents has been delivered, and the exit if the program had exited. */
  replayed: Promise<void>
  /** When the program has exited, in milliseconds since the epoch; null when unknown. */
  finishedAt(): number | null
  addClient(id: string): void
  /** The next agent delivers the output from this offset on to the clients. */
  setNeededOffset(offset: number): void
  storeScreen(snapshot: Snapshot): void
  /** The program continues without the agent. */
  disconnect(): void
  /** Call after the exit. */
  release(): Promise<void>
}

export type PtyOptions = {
  file: string
  args: string[]
  cwd: string
  /** The complete environment. */
  env: Record<string, string>
  cols: number
  rows: number
}

/** The addon's functions that are used; see src/native.d.ts of node-pty. */
type Addon = {
  fork(
    file: string,
    args: string[],
    env: string[],
    cwd: string,
    cols: number,
    rows: number,
    uid: number,
    gid: number,
    isUtf8: boolean,
    helperPath: string,
    onExit: (exitCode: number, signal: number) => void,
  ): { fd: number; pid: number; pty: string }
  resize(fd: number, cols: number, rows: number): void
}

/** uid and gid: those of the agent. */
const UNCHANGED = -1

let addon: Addon | undefined

/** @throws ApiError exec_failed where node-pty has no addon for this system */
function loadAddon(): Addon {
  try {
    addon ??= createRequire(import.meta.url)(`@lydell/node-pty-${process.platform}-${process.arch}/pty.node`)
  } catch (error) {
    const system = `${process.platform}-${process.arch}`
    throw new ApiError(
      'exec_failed',
      `Terminals are not available on this box: node-pty cannot be loaded on ${system}. Use commands without a terminal.`,
      { cause: error },
    )
  }
  if (addon === undefined) throw new Error('the addon has no exports')
  return addon
}

/**
 * A program that cannot be executed exits with code 1 after it has printed the reason.
 * @throws ApiError exec_failed
 */
export function startPty({ file, args, cwd, env, cols, rows }: PtyOptions): Pty {
  const { fork, resize } = loadAddon()
  const exit = Promise.withResolvers<Exit>()
  let hasExited = false
  let onOutput: (bytes: Buffer) => void = () => undefined
  let open: { socket: ReadStream; slaveFd: number } | undefined

  function onExit(exitCode: number, signal: number): void {
    hasExited = true
    if (open !== undefined) {
      const { socket, slaveFd } = open
      // Emits what a paused socket has buffered.
      while (socket.read() !== null);
      if (!socket.destroyed) drain(fd, onOutput)
      socket.destroy()
      closeSync(slaveFd)
    }
    exit.resolve(signal === 0 ? { exitCode, signal: null } : { exitCode: null, signal: signalName(signal) })
  }

  const envp = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const user = [UNCHANGED, UNCHANGED] as const
  const { fd, pid, pty } = startOrFail(() =>
    fork(file, args, envp, cwd, cols, rows, ...user, true, '', onExit),
  )
  setCloseOnExec()
  const socket = new ReadStream(fd)
  socket.on('error', () => undefined)
  try {
    // While this descriptor is open, the other side cannot hang up. On a hangup, libuv discards output that it has not read.
    const slaveFd = startOrFail(() => openSync(pty, constants.O_RDWR | constants.O_NOCTTY))
    open = { socket, slaveFd }
  } catch (error) {
    process.kill(pid, 'SIGKILL')
    socket.destroy()
    throw error
  }

  return {
    pid,
    startTime: readProcess(pid)?.startTime ?? 0,
    host: null,
    start(listener) {
      onOutput = listener
      socket.on('data', onOutput)
    },
    async write(bytes) {
      // socket.write() is not used: for a pseudoterminal, libuv blocks the event loop until the program reads.
      for (let at = 0, delayMs = MIN_WRITE_DELAY_MS; at < bytes.length && !hasExited && !socket.destroyed; ) {
        const length = tryWrite(fd, bytes.subarray(at))
        at += length
        delayMs = length > 0 ? MIN_WRITE_DELAY_MS : Math.min(delayMs * 2, MAX_WRITE_DELAY_MS)
        if (at < bytes.length) await sleep(delayMs)
      }
    },
    resize(cols, rows) {
      if (!hasExited && !socket.destroyed) resize(fd, cols, rows)
    },
    pause: () => socket.pause(),
    resume() {
      if (!hasExited) socket.resume()
    },
    exit: exit.promise,
  }
}

/** The delays between attempts to write while the program does not read. */
const MIN_WRITE_DELAY_MS = 1
const MAX_WRITE_DELAY_MS = 50

/** Returns the number of bytes that the terminal accepted. */
function tryWrite(fd: number, bytes: Buffer): number {
  try {
    return writeSync(fd, bytes)
  } catch (error) {
    if (hasCode(error, 'EAGAIN')) return 0
    // The terminal was hung up.
    if (hasCode(error, 'EIO')) return bytes.length
    throw error
  }
}

const hasCode = (error: unknown, ...codes: string[]): boolean =>
  error instanceof Error && 'code' in error && codes.includes(String(error.code))

function startOrFail<T>(start: () => T): T {
  try {
    return start()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ApiError('exec_failed', `The terminal cannot be opened: ${reason}`, { cause: error })
  }
}

/** Bounds drain(): a background process may have opened the terminal again. More than the kernel buffers. */
const MAX_DRAINED_BYTES = 1024 * 1024

/** Reads what the kernel has buffered. The exit of a session's leader hangs up its terminal, so nothing follows. */
function drain(fd: number, onOutput: (bytes: Buffer) => void): void {
  for (let total = 0; total < MAX_DRAINED_BYTES; ) {
    const bytes = Buffer.allocUnsafe(64 * 1024)
    let length: number
    try {
      length = readSync(fd, bytes)
    } catch (error) {
      // EAGAIN: nothing is left. EIO: no process has the terminal open.
      if (error instanceof Error && 'code' in error && (error.code === 'EAGAIN' || error.code === 'EIO'))
        return
      throw error
    }
    if (length === 0) return
    onOutput(bytes.subarray(0, length))
    total += length
  }
}
