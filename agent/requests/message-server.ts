// Serves the requests that the coordinator sends as text messages over one connection.
import type { Logger } from 'pino'
import { ApiError } from '../../shared/errors.ts'
import { TUNNEL_LIMITS } from '../../shared/limits.ts'
import { type AgentMessage, type CoordinatorMessage, formatMessage } from '../../shared/tunnel-messages.ts'
import type { AgentApp } from '../app.ts'
import { toErrorResponse } from './error-response.ts'
import { RequestResetError } from './json-routes.ts'

type RequestMessage = Extract<CoordinatorMessage, { type: 'request' }>
type ResponseMessage = Extract<AgentMessage, { id: number }>

export type MessageServerOptions = {
  app: Pick<AgentApp, 'jsonRouter' | 'storedResponses'>
  log: Logger
  /** @param onDone called when the message has been sent, or cannot be sent */
  send(message: string | Buffer, onDone: () => void): void
}

export class MessageServer {
  readonly #options: MessageServerOptions
  readonly #running = new Map<number, AbortController>()
  #isClosed = false

  constructor(options: MessageServerOptions) {
    this.#options = options
  }

  /** Executes the request and sends its response, also after a cancellation. Never rejects. */
  async serve(message: RequestMessage, body: Buffer): Promise<void> {
    const { id } = message
    const controller = new AbortController()
    const afterwards: (() => void)[] = []
    const onSent = () => {
      for (const work of afterwards) work()
    }
    this.#running.set(id, controller)
    try {
      const result = await this.#execute(message, body, controller, afterwards)
      if (result === undefined) this.#send({ type: 'response', id, status: 204 }, '', onSent)
      else this.#respond(id, 200, Buffer.isBuffer(result) ? result : JSON.stringify(result), onSent)
    } catch (error) {
      if (error instanceof RequestResetError) return this.#send({ type: 'reset', id }, '', onSent)
      const [route] = message.path.split('?')
      const response = toErrorResponse(error, route, this.#options.log)
      this.#respond(id, response.status, JSON.stringify(response.body), onSent)
    } finally {
      this.#running.delete(id)
    }
  }

  cancel(id: number): void {
    this.#running.get(id)?.abort()
    this.#options.app.storedResponses.delete(id)
  }

  /** Cancels all requests. */
  close(): void {
    this.#isClosed = true
    for (const controller of this.#running.values()) controller.abort()
    this.#options.app.storedResponses.clear()
  }

  #execute(
    { method, path, headers = {} }: RequestMessage,
    body: Buffer,
    controller: AbortController,
    afterwards: (() => void)[],
  ): unknown {
    const { handler, params, query } = this.#options.app.jsonRouter.find(method, path)
    return handler({
      params,
      query,
      headers,
      body: parseBody(body),
      signal: controller.signal,
      abort: () => controller.abort(),
      afterResponse: (work) => void afterwards.push(work),
    })
  }

  #respond(id: number, status: number, body: string | Buffer, onSent: () => void): void {
    if (Buffer.byteLength(body) <= TUNNEL_LIMITS.messageBytes) {
      this.#send({ type: 'response', id, status }, body, onSent)
    } else {
      // Later ids belong to another connection.
      if (!this.#isClosed) this.#options.app.storedResponses.set(id, body)
      this.#send({ type: 'response', id, status, isStored: true }, '', onSent)
    }
  }

  #send(head: ResponseMessage, body: string | Buffer, onSent: () => void): void {
    const { send } = this.#options
    if (Buffer.isBuffer(body)) send(Buffer.concat([Buffer.from(formatMessage(head)), body]), onSent)
    else send(formatMessage(head, body), onSent)
  }
}

/** @throws ApiError bad_request */
function parseBody(body: Buffer): unknown {
  if (body.length === 0) return undefined
  try {
    return JSON.parse(body.toString())
  } catch {
    throw new ApiError('bad_request', 'The body is not JSON.')
  }
}
