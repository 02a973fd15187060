// Serves the requests that the coordinator sends over one connection.
import type { Logger } from 'pino'
import { ApiError } from '../../shared/errors.ts'
import { TUNNEL_LIMITS } from '../../shared/limits.ts'
import { CHUNKS_PROTOCOL_VERSION } from '../../shared/protocol.ts'
import { BodyReceiver, BodySender } from '../../shared/tunnel-bodies.ts'
import {
  type AgentMessage,
  type CoordinatorMessage,
  formatMessage,
  InvalidMessageError,
} from '../../shared/tunnel-messages.ts'
import { toErrorResponse } from './error-response.ts'
import { type AgentResponse, executeRequest } from './execute-request.ts'
import type { JsonRouter } from './json-routes.ts'

type RequestMessage = Extract<CoordinatorMessage, { type: 'request' }>

export type MessageServerOptions = {
  router: JsonRouter
  log: Logger
  /** The version of the protocol on this connection. */
  protocolVersion: number
  /** @param onDone called when the connection has accepted the message, or with an error when it is closed */
  send(message: string | Buffer, isBinary: boolean, onDone: (error?: Error | null) => void): void
}

/** The coordinator may send the next request before the connection has accepted a response. */
const MAX_OPEN_REQUESTS = 2 * TUNNEL_LIMITS.openCalls

type OpenRequest = {
  controller: AbortController
  isCancelled: boolean
  /** Called when the response has been sent, or cannot be sent. */
  afterwards: (() => void)[]
}

export class MessageServer {
  readonly #options: MessageServerOptions
  /** Until the response has been sent completely. */
  readonly #open = new Map<number, OpenRequest>()
  readonly #requests: BodyReceiver
  readonly #responses: BodySender

  constructor(options: MessageServerOptions) {
    this.#options = options
    const { send } = options
    this.#requests = new BodyReceiver((message) => this.#send(message))
    this.#responses = new BodySender((message, onSent) => send(message, true, onSent))
  }

  /**
   * Executes requests and sends their responses, also after a cancellation.
   * @throws InvalidMessageError
   */
  receive(head: CoordinatorMessage, body: Buffer<ArrayBuffer>): void {
    if (head.type === 'request') this.#receiveRequest(head, body)
    else if (head.type === 'chunk') this.#requests.receive(head.id, body)
    else if (head.type === 'window') this.#responses.grant(head)
    else this.#cancel(head.id)
  }

  /** Cancels all requests. */
  close(): void {
    this.#requests.close()
    this.#responses.close()
    for (const { controller } of this.#open.values()) controller.abort()
  }

  #receiveRequest(request: RequestMessage, body: Buffer): void {
    const { id, path, size } = request
    if (this.#open.has(id) || this.#open.size >= MAX_OPEN_REQUESTS)
      throw new InvalidMessageError('too many requests')
    const open: OpenRequest = { controller: new AbortController(), isCancelled: false, afterwards: [] }
    this.#open.set(id, open)
    if (size === undefined) void this.#serve(open, request, body)
    else if (size <= TUNNEL_LIMITS.requestBytes)
      this.#requests.expect(id, size, (complete) => void this.#serve(open, request, complete ?? body))
    else {
      const error = new ApiError(
        'payload_too_large',
        `The body is larger than ${TUNNEL_LIMITS.requestBytes} bytes.`,
      )
      const { status, body } = toErrorResponse(error, path, this.#options.log)
      this.#respond(id, open, { status, body: JSON.stringify(body) })
    }
  }

  /** Never rejects. */
  async #serve(open: OpenRequest, request: RequestMessage, body: Buffer): Promise<void> {
    const { router, log } = this.#options
    const { controller, afterwards } = open
    const { id, method, path, headers } = request
    const controls = {
      signal: controller.signal,
      abort: () => controller.abort(),
      afterResponse: (work: () => void) => void afterwards.push(work),
    }
    const response = await executeRequest(router, { method, path, headers, body }, controls, log)
    if (response === null) this.#reset(id)
    else this.#respond(id, open, response)
  }

  #cancel(id: number): void {
    const open = this.#open.get(id)
    if (open === undefined) return
    open.isCancelled = true
    open.controller.abort()
    // Otherwise the request is being executed, and its response is the next message.
    if (this.#requests.remove(id) || this.#responses.stop(id)) this.#reset(id)
  }

  #respond(id: number, { isCancelled }: OpenRequest, { status, body }: AgentResponse): void {
    const size = Buffer.byteLength(body)
    if (size <= TUNNEL_LIMITS.messageBytes) {
      this.#send({ type: 'response', id, status }, body, () => this.#finish(id))
    } else if (isCancelled) {
      this.#reset(id)
    } else if (this.#options.protocolVersion < CHUNKS_PROTOCOL_VERSION) {
      // A coordinator of an earlier version cannot receive it.
      this.#send({ type: 'response', id, status: 500 }, '', () => this.#finish(id))
    } else {
      this.#send({ type: 'response', id, status, size })
      this.#responses.start(id, Buffer.from(body as Buffer), () => this.#finish(id))
    }
  }

  #reset(id: number): void {
    this.#send({ type: 'reset', id }, '', () => this.#finish(id))
  }

  #finish(id: number): void {
    const open = this.#open.get(id)
    this.#open.delete(id)
    for (const work of open?.afterwards ?? []) work()
  }

  #send(head: AgentMessage, body: string | Buffer = '', onDone: () => void = () => undefined): void {
    const { send } = this.#options
    const message = Buffer.isBuffer(body)
      ? Buffer.concat([Buffer.from(formatMessage(head)), body])
      : formatMessage(head, body)
    send(message, false, onDone)
  }
}
