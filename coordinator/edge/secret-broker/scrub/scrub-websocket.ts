// Masks values in the messages that a server sends on a WebSocket. Only the payloads are searched, so a value that is in two frames
// of a message is masked too, and the end of a message is sent at once.
import { Transform, type TransformCallback } from 'node:stream'
import { BrokerError } from '../broker-error.ts'
import type { Matcher } from './matcher.ts'
import { Scrubber } from './scrubber.ts'

/** Headers of servers: they do not mask their frames. */
const MAX_HEADER_BYTES = 10
const MAX_CONTROL_PAYLOAD = 125
/** Bytes of headers between held back parts of a message. */
const MAX_QUEUED = 64 * 1024
const EMPTY = Buffer.alloc(0)

type Frame = { isFinal: boolean; isControl: boolean; left: number }

export class WebSocketScrubStream extends Transform {
  readonly #matchers: readonly Matcher[]
  /** Of the current message: it may have control frames between its frames. */
  #scrubber: Scrubber
  /** An incomplete header. */
  #header: Buffer = EMPTY
  #frame: Frame | null = null
  /** The payload of an incomplete control frame. */
  #control: Buffer[] = []
  /** The queue of the output: frame headers, and numbers of payload bytes. The scrubber returns the payload in the same order. */
  #queue: (Buffer | number)[] = []
  #queuedBytes = 0
  /** Payload of the scrubber that is not sent yet. */
  #output: Buffer[] = []

  constructor(matchers: readonly Matcher[]) {
    super()
    this.#matchers = matchers
    this.#scrubber = new Scrubber(matchers)
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    let failure: Error | null = null
    try {
      let rest: Buffer = chunk
      while (rest.length > 0)
        rest = this.#frame === null ? this.#readHeader(rest) : this.#readPayload(this.#frame, rest)
      this.#send()
    } catch (error) {
      failure = error as Error
    }
    done(failure)
  }

  override _flush(done: TransformCallback): void {
    this.#output.push(this.#scrubber.flush())
    this.#send()
    done()
  }

  #readHeader(chunk: Buffer): Buffer {
    const data = Buffer.concat([this.#header, chunk.subarray(0, MAX_HEADER_BYTES)])
    const length = getHeaderLength(data)
    if (data.length < length) {
      this.#header = data
      return chunk.subarray(MAX_HEADER_BYTES)
    }
    const header = data.subarray(0, length)
    const rest = chunk.subarray(length - this.#header.length)
    this.#header = EMPTY
    const [first = 0, second = 0] = header
    const left = readPayloadLength(header)
    const isControl = (first & 0x08) !== 0
    // The handshake has no extensions: the payload of a frame with a reserved bit may be compressed.
    if ((first & 0x70) !== 0 || (second & 0x80) !== 0 || (isControl && left > MAX_CONTROL_PAYLOAD))
      throw new BrokerError('upstream_invalid', 'The server has sent a WebSocket frame that is not valid.')
    this.#queuedBytes += length
    if (this.#queuedBytes > MAX_QUEUED)
      throw new BrokerError('upstream_invalid', 'The server has sent too many WebSocket frames of a message.')
    this.#queue.push(header)
    this.#frame = { isFinal: (first & 0x80) !== 0, isControl, left }
    if (left === 0) this.#endFrame(this.#frame)
    return rest
  }

  #readPayload(frame: Frame, chunk: Buffer): Buffer {
    const payload = chunk.subarray(0, frame.left)
    frame.left -= payload.length
    if (frame.isControl) this.#control.push(payload)
    else {
      this.#queue.push(payload.length)
      this.#output.push(this.#scrubber.push(Buffer.from(payload)))
    }
    if (frame.left === 0) this.#endFrame(frame)
    return chunk.subarray(payload.length)
  }

  #endFrame({ isControl, isFinal }: Frame): void {
    this.#frame = null
    if (isControl) {
      const scrubber = new Scrubber(this.#matchers)
      const payload = scrubber.push(Buffer.concat(this.#control))
      this.#queue.push(Buffer.concat([payload, scrubber.flush()]))
      this.#control = []
    } else if (isFinal) {
      this.#output.push(this.#scrubber.flush())
      this.#scrubber = new Scrubber(this.#matchers)
    }
  }

  #send(): void {
    let output = Buffer.concat(this.#output)
    while (true) {
      const next = this.#queue[0]
      if (next === undefined) break
      if (typeof next !== 'number') {
        this.#queue.shift()
        this.#queuedBytes = Math.max(0, this.#queuedBytes - next.length)
        this.push(next)
        continue
      }
      const part = output.subarray(0, next)
      output = output.subarray(part.length)
      if (part.length > 0) this.push(part)
      if (part.length < next) {
        this.#queue[0] = next - part.length
        break
      }
      this.#queue.shift()
    }
    this.#output = output.length > 0 ? [output] : []
  }
}

/** Of the bytes that are known. */
function getHeaderLength(data: Buffer): number {
  const length = (data[1] ?? 0) & 0x7f
  if (length === 127) return 10
  return length === 126 ? 4 : 2
}

function readPayloadLength(header: Buffer): number {
  const length = (header[1] ?? 0) & 0x7f
  if (length === 127) return Number(header.readBigUInt64BE(2))
  return length === 126 ? header.readUInt16BE(2) : length
}
