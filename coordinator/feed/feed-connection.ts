// One client of the feed: sends the items of its view, and then the changes.
import type { WebSocket } from 'ws'
import { type Clock, toTimestamp } from '../../shared/clock.ts'
import { CLOSE_CODES } from '../../shared/close-codes.ts'
import { closeWebSocket } from '../http/websocket.ts'
import type { FeedView } from './view.ts'

export type FeedConnectionOptions = {
  clock: Clock
  /** Interval of the `alive` messages and of the pings. Default: 15 s. */
  aliveMs?: number | undefined
}

/** Above this number of unsent bytes, the client is too slow for the changes of its workspace. */
const MAX_BUFFERED_BYTES = 1024 * 1024
/** A client that misses this many pings is dead. */
const MISSED_PINGS = 3
/** Pings that a client may send per interval. */
const MAX_CLIENT_PINGS = 100

export class FeedConnection {
  readonly view: FeedView
  /** Resolves when the WebSocket is closing or closed. */
  readonly ended: Promise<void>
  readonly #ws: WebSocket
  readonly #clock: Clock
  readonly #end: () => void
  readonly #aliveTimer: NodeJS.Timeout
  #isEnded = false
  /** The changes since the first items were read. They are sent after the items. null: the items have been sent. */
  #held: Buffer[] | null = []
  #heldBytes = 0
  #missedPings = 0
  #clientPings = 0

  /** @param ws paused */
  constructor(ws: WebSocket, view: FeedView, { clock, aliveMs = 15_000 }: FeedConnectionOptions) {
    const ended = Promise.withResolvers<void>()
    this.view = view
    this.ended = ended.promise
    this.#ws = ws
    this.#clock = clock
    this.#end = ended.resolve
    this.#aliveTimer = setInterval(() => this.#sendAlive(), aliveMs)
    ws.on('message', () => this.close(CLOSE_CODES.invalid, 'no messages expected'))
    ws.on('ping', (data) => {
      this.#clientPings += 1
      if (this.#clientPings > MAX_CLIENT_PINGS) ws.terminate()
      else ws.pong(data)
    })
    ws.on('pong', () => {
      this.#missedPings = 0
    })
    ws.on('error', () => undefined)
    ws.once('close', () => this.#stop())
    // The connection may have closed before the listeners were added.
    if (ws.readyState > ws.OPEN) this.#stop()
    ws.resume()
  }

  /** Sends each message when the client has received enough of the one before. Then sends the held changes, and `ready`. */
  async sendItems(messages: AsyncIterable<string>): Promise<void> {
    for await (const message of messages) {
      if (this.#isEnded) return
      await new Promise<void>((resolve) => this.#ws.send(message, () => resolve()))
    }
    if (this.#isEnded) return
    for (const message of this.#held ?? []) this.#send(message)
    this.#held = null
    this.#heldBytes = 0
    this.#send(`{"type":"ready","at":"${toTimestamp(this.#clock.now())}"}`)
  }

  /** @param messages UTF-8, which several connections share */
  sendChanges(messages: readonly Buffer[]): void {
    if (this.#isEnded) return
    if (Math.max(this.#ws.bufferedAmount, this.#heldBytes) > MAX_BUFFERED_BYTES) {
      this.close(CLOSE_CODES.overloaded, 'too slow')
      return
    }
    for (const message of messages)
      if (this.#held === null) this.#send(message)
      else {
        this.#held.push(message)
        this.#heldBytes += message.length
      }
  }

  close(code: number, reason: string): void {
    if (this.#isEnded) return
    this.#stop()
    closeWebSocket(this.#ws, code, reason)
  }

  #stop(): void {
    this.#isEnded = true
    this.#held = null
    clearInterval(this.#aliveTimer)
    this.#end()
  }

  #sendAlive(): void {
    this.#clientPings = 0
    this.#missedPings += 1
    if (this.#missedPings > MISSED_PINGS) this.#ws.terminate()
    else {
      this.#ws.ping()
      this.#send(`{"type":"alive","at":"${toTimestamp(this.#clock.now())}"}`)
    }
  }

  #send(message: Buffer | string): void {
    this.#ws.send(message, { binary: false }, () => undefined)
  }
}
