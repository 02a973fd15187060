// One TCP connection over a WebSocket: the agent, the coordinator and the `box` command each have an end. A binary message has
// bytes of the connection, and an empty one is the FIN of its direction. A WebSocket that closes earlier is a reset.
import { ATTACH_LIMITS } from './attach-format.ts'
import { type BinaryWebSocket, WebSocketDuplex } from './websocket-duplex.ts'
import { whenRead } from './when-read.ts'

/** The members of ws's WebSocket that this module uses. */
export type ConnectionWebSocket = BinaryWebSocket & {
  readonly readyState: number
  readonly bufferedAmount: number
  ping(data?: Uint8Array): void
  pong(data: Uint8Array): void
  close(code: number, reason?: string): void
  terminate(): void
  on(event: 'message', listener: (data: unknown, isBinary: boolean) => void): unknown
  on(event: 'ping' | 'pong', listener: (data: Buffer) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  once(event: 'close', listener: () => void): unknown
}

export type TcpOverWebSocketOptions = {
  /** Counts a received message. Returns the milliseconds until the next one may be read. Default: no limit. */
  countMessage?: () => number
  /** Whether the WebSocket does not respond to pings by itself, as those of the coordinator. Default: false. */
  respondsToPings?: boolean
  /** The interval of the pings. Default: 15 s. */
  pingMs?: number
}

const PING_MS = 15_000
/** A peer that sends nothing for this many intervals is dead. */
const SILENT_INTERVALS = 4
/** Control frames that a peer may send per interval. */
const MAX_CONTROL_FRAMES = 100
/** How long the peer may take to complete the closing handshake. */
const CLOSE_TIMEOUT_MS = 5_000
/** How long a reader may take to read what was received before a reset. */
export const RESET_TIMEOUT_MS = 60_000

/** The states of a WebSocket from closing on. */
const CLOSING = 2
const CLOSE_NORMAL = 1000

const FIN = Buffer.alloc(0)
/** The content of the last ping. The peer responds when it has read all bytes before it. */
const LAST_PING = Buffer.from('end')

/**
 * Closes the WebSocket when both directions have ended and the peer has read everything, and terminates it when the stream is
 * destroyed earlier. Both ends send pings. Has the methods that Node's HTTP client calls on a socket.
 */
export class TcpOverWebSocket extends WebSocketDuplex {
  readonly #ws: ConnectionWebSocket
  readonly #countMessage: () => number
  readonly #pingTimer: NodeJS.Timeout
  #isFinReceived = false
  /** Both directions have ended, and the stream is closed. The peer may still read. */
  #isComplete = false
  #isThrottled = false
  #silentIntervals = 0
  #controlFrames = 0
  /** The stream is destroyed when the peer has read the written bytes. */
  #isResetting = false
  /** The code with which the WebSocket of a reset connection is closed; null: it is terminated. */
  #closing: { code: number; reason: string } | null = null
  #resetTimer: NodeJS.Timeout | undefined
  #idleMs = 0
  #idleTimer: NodeJS.Timeout | undefined

  /** @param ws open and paused, or it has not received messages yet */
  constructor(ws: ConnectionWebSocket, options: TcpOverWebSocketOptions = {}) {
    super(ws, { allowHalfOpen: true, maxMessageBytes: ATTACH_LIMITS.chunkBytes })
    this.#ws = ws
    this.#countMessage = options.countMessage ?? (() => 0)
    // Without this listener, an error of the WebSocket would be an uncaught exception. 'close' follows.
    ws.on('error', () => undefined)
    ws.on('message', (data, isBinary) => this.#receiveMessage(data, isBinary))
    ws.on('ping', (data) => {
      this.#countControlFrame()
      if (options.respondsToPings) ws.pong(data)
    })
    ws.on('pong', (data) => {
      this.#countControlFrame()
      if (!data.equals(LAST_PING)) return
      if (this.#isComplete) this.#closeWebSocket(CLOSE_NORMAL, '')
      else if (this.#isResetting) this.destroy()
    })
    ws.once('close', () => this.#onClose())
    this.#pingTimer = setInterval(() => this.#ping(), options.pingMs ?? PING_MS).unref()
    if (ws.readyState >= CLOSING) this.#onClose()
  }

  #receiveMessage(data: unknown, isBinary: boolean): void {
    if (this.destroyed) return
    this.#recordActivity()
    if (!isBinary || !Buffer.isBuffer(data) || this.#isFinReceived) {
      this.destroy(new Error('The peer sent a message that is not valid.'))
      return
    }
    if (data.length > 0) this.receive(data)
    else {
      this.#isFinReceived = true
      this.push(null)
    }
    const delayMs = this.#countMessage()
    if (delayMs > 0 && !this.#isThrottled) this.#throttle(delayMs)
  }

  #throttle(delayMs: number): void {
    this.#isThrottled = true
    this.#ws.pause()
    setTimeout(() => {
      this.#isThrottled = false
      if (this.readableLength < this.readableHighWaterMark) this._read()
    }, delayMs).unref()
  }

  #onClose(): void {
    clearInterval(this.#pingTimer)
    // A FIN that could not be sent does not complete the connection.
    if (this.writableFinished && this.#isFinReceived) return
    // A server may respond, and then reset the connection because it does not read the whole request.
    const reset = () => this.destroy(createResetError())
    this.#resetTimer = setTimeout(reset, RESET_TIMEOUT_MS).unref()
    if (!this.#isFinReceived) whenRead(this, reset)
    else if (this.readableEnded) reset()
    else this.once('end', reset)
  }

  #countControlFrame(): void {
    this.#silentIntervals = 0
    this.#controlFrames += 1
    if (this.#controlFrames > MAX_CONTROL_FRAMES) this.#reset(new Error('The peer sent too many pings.'))
  }

  #ping(): void {
    this.#controlFrames = 0
    // This side does not read from a paused WebSocket.
    this.#silentIntervals = this.#ws.isPaused ? 0 : this.#silentIntervals + 1
    if (this.#silentIntervals >= SILENT_INTERVALS) this.#reset(createResetError())
    // A peer that does not read would let the pings accumulate.
    else if (this.#ws.bufferedAmount === 0) this.#ws.ping()
  }

  #reset(error: Error): void {
    this.destroy(error)
    if (this.#isComplete) this.#ws.terminate()
  }

  #closeWebSocket(code: number, reason: string): void {
    this.#ws.close(code, reason)
    setTimeout(() => this.#ws.terminate(), CLOSE_TIMEOUT_MS).unref()
  }

  #recordActivity(): void {
    this.#silentIntervals = 0
    this.#idleTimer?.refresh()
  }

  override _read(): void {
    if (!this.#isThrottled) super._read()
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#idleTimer?.refresh()
    super._write(chunk, encoding, ignoreFailure(done))
  }

  override _writev(entries: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#idleTimer?.refresh()
    super._writev(entries, ignoreFailure(done))
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#ws.send(FIN, ignoreFailure(done))
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#idleTimer)
    clearTimeout(this.#resetTimer)
    this.#isComplete = error === null && this.writableFinished && this.#isFinReceived
    // A closing WebSocket is terminated after some seconds, and a slow peer would lose the last bytes.
    if (this.#isComplete) this.#ws.ping(LAST_PING)
    else {
      clearInterval(this.#pingTimer)
      if (this.#closing === null) this.#ws.terminate()
      else this.#closeWebSocket(this.#closing.code, this.#closing.reason)
    }
    super._destroy(error, done)
  }

  /** Resets the connection when the peer has read the written bytes. Discards what is received. */
  resetSoon(): void {
    if (this.destroyed || this.#isResetting) return
    this.#isResetting = true
    // A pipe would pause the stream when its target closes, and the pong would not be read.
    this.unpipe()
    this.resume()
    this.#resetTimer = setTimeout(() => this.destroy(), RESET_TIMEOUT_MS).unref()
    const sendLastPing = () => this.#ws.ping(LAST_PING)
    if (this.writableFinished) sendLastPing()
    else if (this.writableEnded) this.once('finish', sendLastPing)
    else this.write(FIN, sendLastPing)
  }

  /** Resets the connection, and closes the WebSocket with this code. */
  abort(code: number, reason: string): void {
    if (this.destroyed) return
    this.#closing = { code, reason }
    this.destroy()
  }

  /** As net.Socket: emits 'timeout' when no bytes are sent or received for this long; 0 disables it. */
  setTimeout(ms: number, listener?: () => void): this {
    clearTimeout(this.#idleTimer)
    this.#idleMs = ms
    this.#idleTimer = ms > 0 ? setTimeout(() => this.emit('timeout'), ms).unref() : undefined
    if (listener !== undefined) {
      if (ms > 0) this.once('timeout', listener)
      else this.off('timeout', listener)
    }
    return this
  }

  get timeout(): number {
    return this.#idleMs
  }

  /** As net.Socket: destroys the stream when the written bytes are sent. */
  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  // The agent sets this option of the TCP connection, and the other options do not apply to a WebSocket.
  setNoDelay = (): this => this
  setKeepAlive = (): this => this
  ref = (): this => this
  unref = (): this => this
}

/** After a failure the write never completes. 'close' of the WebSocket follows, and the received bytes can be read before. */
const ignoreFailure =
  (done: (error?: Error | null) => void) =>
  (error?: Error | null): void => {
    if (!error) done()
  }

const createResetError = (): Error =>
  Object.assign(new Error('The connection was reset.'), { code: 'ECONNRESET' })
