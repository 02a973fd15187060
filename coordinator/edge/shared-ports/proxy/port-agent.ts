// Keep-alive connections to one port of a box, for the HTTP client of Node.
import { Agent, type ClientRequest } from 'node:http'
import type { Duplex } from 'node:stream'
import { MAX_HEADER_BYTES } from '../../../http/forward/forward.ts'
import { HeaderNormalizer } from './header-normalizer.ts'

type CreateCallback = (error: Error | null, stream: Duplex) => void

export type PortAgentOptions = {
  connect(): Promise<Duplex>
  /** An unused connection is closed after this time. */
  idleMs: number
}

export class PortAgent extends Agent {
  readonly #connect: () => Promise<Duplex>
  readonly #idleMs: number
  readonly #idleTimers = new WeakMap<Duplex, NodeJS.Timeout>()
  readonly #normalizers = new WeakMap<Duplex, HeaderNormalizer>()

  constructor({ connect, idleMs }: PortAgentOptions) {
    super({ keepAlive: true })
    this.#connect = connect
    this.#idleMs = idleMs
  }

  override createConnection(_options: object, callback?: CreateCallback): undefined {
    this.#connect().then(
      (stream) => {
        stream.once('close', () => clearTimeout(this.#idleTimers.get(stream)))
        this.#normalizers.set(stream, normalizeHeaders(stream))
        callback?.(null, addSocketMethods(stream))
      },
      // The callback gets no stream with an error.
      (error: Error) => (callback as ((error: Error) => void) | undefined)?.(error),
    )
  }

  override keepSocketAlive(stream: Duplex): boolean {
    // A server that sends such headers may also be wrong about the end of its response.
    if (this.#normalizers.get(stream)?.hasChanged) return false
    // Node's types do not have the result, which is false when the server closes the connection too soon.
    const isKept: unknown = super.keepSocketAlive(stream)
    if (isKept === false) return false
    this.#idleTimers.set(stream, setTimeout(() => stream.destroy(), this.#idleMs).unref())
    return true
  }

  override reuseSocket(stream: Duplex, request: ClientRequest): void {
    clearTimeout(this.#idleTimers.get(stream))
    this.#normalizers.get(stream)?.startResponse()
    super.reuseSocket(stream, request)
  }
}

/** Passes what the stream receives through a HeaderNormalizer, without a further stream for the bodies. */
function normalizeHeaders(stream: Duplex): HeaderNormalizer {
  const normalizer = new HeaderNormalizer(MAX_HEADER_BYTES)
  // The server may have responded before the request.
  const early: unknown = stream.readableLength > 0 ? stream.read() : null
  const push = stream.push.bind(stream)
  stream.push = (chunk: Buffer | null) => {
    if (chunk !== null) return push(normalizer.write(chunk))
    const rest = normalizer.end()
    if (rest.length > 0) push(rest)
    return push(null)
  }
  if (!Buffer.isBuffer(early)) return normalizer
  const corrected = normalizer.write(early)
  stream.unshift(stream.readableEnded ? Buffer.concat([corrected, normalizer.end()]) : corrected)
  return normalizer
}

const noop = () => undefined

/** Agent calls these methods of net.Socket, which other streams do not have. */
function addSocketMethods(stream: Duplex): Duplex {
  // The HTTP client must not send a request after the FIN of the server.
  stream.allowHalfOpen = false
  return 'setKeepAlive' in stream
    ? stream
    : Object.assign(stream, {
        setKeepAlive: noop,
        setTimeout: noop,
        setNoDelay: noop,
        ref: noop,
        unref: noop,
      })
}
