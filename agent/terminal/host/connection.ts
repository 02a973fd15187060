// The connection of the agent to a terminal host: the state that the host holds, then the output, with flow control.
import { closeSync, constants, openSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { Snapshot } from '../screen.ts'
import { createFrameReader, encodeLimits, type HostFrame } from './frames.ts'

/** What the host holds when the agent connects. */
export type HostState = Omit<Extract<HostFrame, { type: 'hello' }>, 'type'> & {
  screen: Snapshot | null
  /** Accepted bytes of the input of each client. */
  clients: ReadonlyMap<string, number>
}
export type HostExit = Extract<HostFrame, { type: 'exit' }>

export type HostEvents = {
  onOutput(bytes: Buffer): void
  /** The terminal has accepted the input. */
  onWritten(): void
}

/** Output that the host reads beyond what the session has processed. Small: after a pause, the host still reads it. */
const WINDOW_BYTES = 128 * 1024
/**
 * Output that the host reads while no agent is connected, beyond what the fastest client has processed. Not more than the
 * ring of a session, so that this client can continue when the next agent has read the output.
 */
const OFFLINE_BYTES = 2 * 1024 * 1024
/** A host sends more than the limit only when the program exits: the rest of the output. */
const MAX_EXCESS_BYTES = 2 * 1024 * 1024
const MAX_CLIENTS = 256
const CONNECT_TIMEOUT_MS = 5_000

export class HostConnection {
  /** Rejects when the host closes the connection first, or sends something invalid. */
  readonly state: Promise<HostState>
  /** Resolves after all output. null: the host has disconnected without an exit. */
  readonly exit: Promise<HostExit | null>
  readonly #socket: Socket
  readonly #state = Promise.withResolvers<HostState>()
  readonly #exit = Promise.withResolvers<HostExit | null>()
  readonly #clients = new Map<string, number>()
  #screen: Snapshot | null = null
  /** Frames that wait for start(). */
  #waiting: HostFrame[] = []
  #events: HostEvents | null = null
  /** Offset of the next byte of output. */
  #received = 0
  #neededOffset = 0
  #isPaused = false
  #error: unknown = null
  readonly #sent = { connected: 0, offline: 0 }
  /** The highest limit so far. */
  #allowed = 0

  constructor(socket: Socket) {
    this.#socket = socket
    this.state = this.#state.promise
    this.exit = this.#exit.promise
    const reader = createFrameReader()
    socket.on('error', (error) => {
      this.#error = error
    })
    socket.on('data', (chunk) => this.#handle(reader.read(chunk)))
    socket.once('close', () => {
      this.#state.reject(new Error('the terminal host has closed the connection'))
      this.#exit.resolve(null)
    })
  }

  /** Resolves when the state has arrived. @param dir of the session @throws Error */
  static async open(dir: string): Promise<{ connection: HostConnection; state: HostState }> {
    const connection = new HostConnection(await connectToSocket(dir))
    const timer = setTimeout(() => connection.disconnect(), CONNECT_TIMEOUT_MS)
    try {
      return { connection, state: await connection.state }
    } catch (error) {
      connection.disconnect()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** Why the connection was lost; null when the host has closed it. */
  get error(): unknown {
    return this.#error
  }

  get received(): number {
    return this.#received
  }

  start(events: HostEvents): void {
    this.#events = events
    const waiting = this.#waiting
    this.#waiting = []
    this.#handle(waiting)
    this.#socket.resume()
    this.#sendLimits()
  }

  send(frame: Buffer): void {
    if (this.#socket.writable) this.#socket.write(frame)
  }

  /** Blocks the program after some more output. */
  setPaused(isPaused: boolean): void {
    if (this.#isPaused === isPaused) return
    this.#isPaused = isPaused
    this.#sendLimits()
  }

  /** The next agent needs the output from this offset on. */
  setNeededOffset(offset: number): void {
    this.#neededOffset = offset
  }

  /** The session continues. */
  disconnect(): void {
    this.#socket.destroy()
  }

  /** Sends the frame as the last one. */
  end(frame: Buffer): void {
    this.#socket.end(frame)
    this.#socket.resume()
  }

  #handle(frames: Iterable<HostFrame>): void {
    try {
      for (const frame of frames) this.#onFrame(frame)
    } catch (error) {
      this.#error = error
      this.#state.reject(error)
      this.#socket.destroy()
    }
  }

  #onFrame(frame: HostFrame): void {
    if (frame.type === 'client') this.#addClient(frame.id, frame.accepted)
    else if (frame.type === 'screen') this.#screen = frame.screen
    else if (frame.type === 'hello') {
      const { type, ...state } = frame
      this.#received = state.start
      this.#neededOffset = state.end
      this.#allowed = state.end
      this.#state.resolve({ ...state, screen: this.#screen, clients: this.#clients })
    } else if (this.#events === null) {
      this.#waiting.push(frame)
      this.#socket.pause()
    } else if (frame.type === 'output') this.#onOutput(frame.offset, frame.bytes, this.#events)
    else if (frame.type === 'written') this.#events.onWritten()
    else this.#exit.resolve(frame)
  }

  #addClient(id: string, accepted: number): void {
    if (this.#clients.size === MAX_CLIENTS) throw new Error('too many clients')
    this.#clients.set(id, accepted)
  }

  #onOutput(offset: number, bytes: Buffer, { onOutput }: HostEvents): void {
    if (offset !== this.#received) throw new Error(`output at ${offset} instead of ${this.#received}`)
    this.#received += bytes.length
    if (this.#received > this.#allowed + MAX_EXCESS_BYTES) throw new Error('output beyond the limit')
    onOutput(bytes)
    this.#sendLimits()
  }

  /** Sends the limits when one has grown by half of the window. */
  #sendLimits(): void {
    const connected = this.#isPaused ? this.#sent.connected : this.#received + WINDOW_BYTES
    const offline = this.#neededOffset + OFFLINE_BYTES
    const grown = Math.max(connected - this.#sent.connected, offline - this.#sent.offline)
    if (grown < WINDOW_BYTES / 2) return
    Object.assign(this.#sent, { connected, offline })
    this.#allowed = Math.max(this.#allowed, connected)
    this.send(encodeLimits(connected, offline))
  }
}

/** The path of the socket may be too long for the address of a socket, and its directory must not be a symbolic link. */
async function connectToSocket(dir: string): Promise<Socket> {
  const fd = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket = connect({ path: `/proc/self/fd/${fd}/socket` })
  socket.once('connect', () => resolve(socket))
  socket.once('error', reject)
  try {
    return await promise
  } finally {
    socket.off('error', reject)
    closeSync(fd)
  }
}
