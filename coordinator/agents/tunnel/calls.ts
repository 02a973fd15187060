// Requests to an agent whose bodies and responses are complete in memory: one text message each way, or HTTP/2 where the
// agent does not support messages or a body is large. The agent is untrusted: each message is checked.
import type { WebSocket } from 'ws'
import { ApiError } from '../../../shared/errors.ts'
import { TUNNEL_LIMITS } from '../../../shared/limits.ts'
import {
  type AgentMessage,
  type CoordinatorMessage,
  formatMessage,
  InvalidMessageError,
} from '../../../shared/tunnel-messages.ts'
import { createTimeoutError, withDeadline } from './deadline.ts'
import { createAgentProtocolError, createTooLargeError, readBody } from './read-response.ts'
import type { Tunnel, TunnelCall, TunnelCallResponse } from './types.ts'

/** Above this, the agent does not read as fast as the coordinator sends. HTTP/2 has flow control. */
const MAX_UNSENT_BYTES = 1024 * 1024
const acceptMessage = () => TUNNEL_LIMITS.messageBytes
const JSON_HEADERS = { 'content-type': 'application/json' }

/** `storedId` is the id of the request whose response the agent has stored. */
type MessageResponse = TunnelCallResponse & { storedId: number | undefined }
type OpenCall = { resolve(response: MessageResponse): void; reject(error: unknown): void }

export class Calls {
  readonly #ws: WebSocket
  readonly #request: Tunnel['request']
  readonly #usesMessages: boolean
  /** undefined: the call has been cancelled, and its response will be discarded. */
  readonly #open = new Map<number, OpenCall | undefined>()
  #lastId = 0

  /** @param request sends a request over HTTP/2 */
  constructor(ws: WebSocket, request: Tunnel['request'], usesMessages: boolean) {
    this.#ws = ws
    this.#request = request
    this.#usesMessages = usesMessages
  }

  /** See Tunnel. */
  async call(call: TunnelCall): Promise<TunnelCallResponse> {
    if (!this.#canSendMessage(call)) return callByRequest(this.#request, call)
    const { signal, timeoutMs, maxBytes = acceptMessage } = call
    const deadline = performance.now() + timeoutMs
    const { status, body, storedId } = await this.#callByMessage(call)
    const limit = maxBytes(status)
    if (body.length > limit) throw createTooLargeError(limit)
    if (storedId === undefined) return { status, body }
    const path = `/responses/${storedId}`
    const remainingMs = deadline - performance.now()
    const fetchCall = { method: 'GET', path, signal, timeoutMs: remainingMs, maxBytes: () => limit } as const
    const stored = await callByRequest(this.#request, fetchCall).catch((error: unknown) => {
      this.#send({ type: 'cancel', id: storedId })
      throw error
    })
    if (stored.status !== 200) throw createAgentProtocolError('The agent has lost its response.')
    return { status, body: stored.body }
  }

  /** @throws InvalidMessageError */
  receive(message: Exclude<AgentMessage, { type: 'http2.closed' }>, body: Buffer<ArrayBuffer>): void {
    const { id } = message
    if (!this.#open.has(id)) throw new InvalidMessageError('a response to an unknown request')
    if (body.length > TUNNEL_LIMITS.messageBytes) throw new InvalidMessageError('a response is too large')
    const call = this.#open.get(id)
    this.#open.delete(id)
    if (message.type === 'reset') return void call?.reject(new ApiError('box_unreachable'))
    const storedId = message.isStored ? id : undefined
    if (call !== undefined) call.resolve({ status: message.status, body, storedId })
    else if (storedId !== undefined) this.#send({ type: 'cancel', id: storedId })
  }

  /** Rejects all calls. */
  close(error: ApiError): void {
    for (const call of this.#open.values()) call?.reject(error)
    this.#open.clear()
  }

  /** A cancelled call counts until the agent has responded. */
  #canSendMessage({ body = '' }: TunnelCall): boolean {
    return (
      this.#usesMessages &&
      this.#open.size < TUNNEL_LIMITS.openCalls &&
      this.#ws.bufferedAmount < MAX_UNSENT_BYTES &&
      Buffer.byteLength(body) <= TUNNEL_LIMITS.messageBytes
    )
  }

  #callByMessage({ method, path, headers, body, signal, timeoutMs }: TunnelCall): Promise<MessageResponse> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const cancel = (reason: unknown) => {
        this.#open.set(id, undefined)
        this.#send({ type: 'cancel', id })
        call.reject(reason)
      }
      const onAbort = () => cancel(signal?.reason)
      const timer = setTimeout(() => cancel(createTimeoutError()), timeoutMs)
      const stopWaiting = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      }
      const call: OpenCall = {
        resolve(response) {
          stopWaiting()
          resolve(response)
        },
        reject(error) {
          stopWaiting()
          reject(error)
        },
      }
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#open.set(id, call)
      this.#send({ type: 'request', id, method, path, headers }, body)
    })
  }

  #send(head: CoordinatorMessage, body?: string): void {
    if (this.#ws.readyState === this.#ws.OPEN) this.#ws.send(formatMessage(head, body))
  }
}

/** Sends a call as a request with a stream of its own. See Tunnel. */
export function callByRequest(
  request: Tunnel['request'],
  { timeoutMs, maxBytes = acceptMessage, ...call }: TunnelCall,
): Promise<TunnelCallResponse> {
  return withDeadline(timeoutMs, call.signal, async (signal) => {
    const { method, path, body } = call
    const headers = body === undefined ? call.headers : { ...call.headers, ...JSON_HEADERS }
    const response = await request({
      method,
      path,
      signal,
      headTimeoutMs: timeoutMs,
      ...(headers && { headers }),
      ...(body !== undefined && { body: Buffer.from(body) }),
    })
    const { status } = response
    return { status, body: await readBody(response.body, maxBytes(status)) }
  })
}
