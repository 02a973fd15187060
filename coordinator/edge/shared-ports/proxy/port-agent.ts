// Keep-alive connections to one port of a box, for the HTTP client of Node.
import { Agent, type ClientRequest } from 'node:http'
import type { Duplex } from 'node:stream'

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

  constructor({ connect, idleMs }: PortAgentOptions) {
    super({ keepAlive: true })
    this.#connect = connect
    this.#idleMs = idleMs
  }

  override createConnection(_options: object, callback?: CreateCallback): undefined {
    this.#connect().then(
      (stream) => {
        stream.once('close', () => clearTimeout(this.#idleTimers.get(stream)))
        callback?.(null, addSocketMethods(stream))
      },
      // The callback gets no stream with an error.
      (error: Error) => (callback as ((error: Error) => void) | undefined)?.(error),
    )
  }

  override keepSocketAlive(stream: Duplex): boolean {
    // Node's types do not have the result, which is false when the server closes the connection too soon.
    const isKept: unknown = super.keepSocketAlive(stream)
    if (isKept === false) return false
    this.#idleTimers.set(stream, setTimeout(() => stream.destroy(), this.#idleMs).unref())
    return true
  }

  override reuseSocket(stream: Duplex, request: ClientRequest): void {
    clearTimeout(this.#idleTimers.get(stream))
    super.reuseSocket(stream, request)
  }
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
