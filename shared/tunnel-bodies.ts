// Bodies of the tunnel that are too large for one message. The receiver reserves memory for a body, then grants the sender
// a window of bytes, which are sent as chunks: neither the memory nor the connection fills with one body.
import { TUNNEL_LIMITS } from './limits.ts'
import {
  type ChunkMessage,
  formatMessage,
  InvalidMessageError,
  type WindowMessage,
} from './tunnel-messages.ts'

/** The most bytes of one body that are granted and not received yet. */
const WINDOW_BYTES = 1024 * 1024
/** The bodies that one side receives at the same time on one connection. Others wait. */
const RESERVED_BYTES = 64 * 1024 * 1024

type IncomingBody = {
  size: number
  granted: number
  received: number
  /** waiting: no memory is reserved yet. discarded: what was granted may still arrive. */
  state: 'waiting' | 'receiving' | 'discarded'
  chunks: Buffer<ArrayBuffer>[]
  onEnd(body: Buffer<ArrayBuffer> | null): void
}

export class BodyReceiver {
  readonly #grant: (message: WindowMessage) => void
  readonly #bodies = new Map<number, IncomingBody>()
  #reserved = 0

  /** @param grant sends the message */
  constructor(grant: (message: WindowMessage) => void) {
    this.#grant = grant
  }

  has(id: number): boolean {
    return this.#bodies.has(id)
  }

  /**
   * @param size in bytes, at most 64 MiB
   * @param onEnd called when the last byte has arrived: with the body, or with null when it was discarded
   */
  expect(id: number, size: number, onEnd: IncomingBody['onEnd']): void {
    this.#bodies.set(id, { size, granted: 0, received: 0, state: 'waiting', chunks: [], onEnd })
    this.#reserve()
  }

  /** Grants nothing: the sender must send a reset. */
  refuse(id: number): void {
    const onEnd = () => undefined
    this.#bodies.set(id, { size: 0, granted: 0, received: 0, state: 'discarded', chunks: [], onEnd })
  }

  /** @throws InvalidMessageError for bytes that were not granted */
  receive(id: number, bytes: Buffer<ArrayBuffer>): void {
    const body = this.#bodies.get(id)
    if (body === undefined || bytes.length === 0 || body.received + bytes.length > body.granted)
      throw new InvalidMessageError('a chunk that was not requested')
    body.received += bytes.length
    if (body.state === 'receiving') body.chunks.push(bytes)
    if (body.received === body.size) {
      this.remove(id)
      body.onEnd(body.state === 'receiving' ? Buffer.concat(body.chunks, body.size) : null)
    } else if (body.state === 'receiving') this.#extendWindow(id, body)
  }

  /** The body is not needed: grants no more, and frees the memory. Without an effect for an unknown id. */
  discard(id: number): void {
    const body = this.#bodies.get(id)
    if (body === undefined) return
    this.#release(body)
    body.state = 'discarded'
    body.chunks = []
    this.#reserve()
  }

  /** The sender sends no more. False for an unknown id. */
  remove(id: number): boolean {
    const body = this.#bodies.get(id)
    if (body === undefined) return false
    this.#bodies.delete(id)
    this.#release(body)
    this.#reserve()
    return true
  }

  close(): void {
    this.#bodies.clear()
  }

  #release({ state, size }: IncomingBody): void {
    if (state === 'receiving') this.#reserved -= size
  }

  /** The body that has waited longest is the next. */
  #reserve(): void {
    for (const [id, body] of this.#bodies) {
      if (body.state !== 'waiting') continue
      if (this.#reserved + body.size > RESERVED_BYTES) return
      this.#reserved += body.size
      body.state = 'receiving'
      this.#extendWindow(id, body)
    }
  }

  #extendWindow(id: number, body: IncomingBody): void {
    if (body.granted - body.received > WINDOW_BYTES / 2) return
    const bytes = Math.min(body.size, body.received + WINDOW_BYTES) - body.granted
    if (bytes === 0) return
    body.granted += bytes
    this.#grant({ type: 'window', id, bytes })
  }
}

type OutgoingBody = { bytes: Buffer; sent: number; granted: number; isSending: boolean; onDone(): void }

export class BodySender {
  readonly #send: (message: Buffer, onSent: (error?: Error | null) => void) => void
  readonly #bodies = new Map<number, OutgoingBody>()
  #isClosed = false

  /** @param send must call `onSent` when the connection has accepted the message, or with an error */
  constructor(send: (message: Buffer, onSent: (error?: Error | null) => void) => void) {
    this.#send = send
  }

  /**
   * Sends the body when the receiver grants a window.
   * @param onDone called when the body has been sent, or will not be sent
   */
  start(id: number, bytes: Buffer, onDone: () => void): void {
    if (this.#isClosed) onDone()
    else this.#bodies.set(id, { bytes, sent: 0, granted: 0, isSending: false, onDone })
  }

  /**
   * Without an effect for an unknown id: the body may have been stopped meanwhile.
   * @throws InvalidMessageError for a window beyond the body
   */
  grant({ id, bytes }: WindowMessage): void {
    const body = this.#bodies.get(id)
    if (body === undefined) return
    body.granted += bytes
    if (body.granted > body.bytes.length) throw new InvalidMessageError('a window beyond a body')
    if (!body.isSending) this.#sendNext(id, body)
  }

  /** Sends no more of the body. False for an unknown id, also when the body has been sent. */
  stop(id: number): boolean {
    const body = this.#bodies.get(id)
    this.#bodies.delete(id)
    body?.onDone()
    return body !== undefined
  }

  close(): void {
    this.#isClosed = true
    for (const id of [...this.#bodies.keys()]) this.stop(id)
  }

  /** One chunk at a time: messages of other requests are sent in between. */
  #sendNext(id: number, body: OutgoingBody): void {
    const end = Math.min(body.granted, body.sent + TUNNEL_LIMITS.messageBytes)
    const head = formatMessage({ type: 'chunk', id } satisfies ChunkMessage)
    const message = Buffer.concat([Buffer.from(head), body.bytes.subarray(body.sent, end)])
    body.sent = end
    body.isSending = true
    this.#send(message, (error) => {
      body.isSending = false
      if (this.#bodies.get(id) !== body) return
      if (error || body.sent === body.bytes.length) this.stop(id)
      else if (body.sent < body.granted) this.#sendNext(id, body)
    })
  }
}
