// Requests to an agent whose bodies and responses are complete in memory. The agent is untrusted: each message is checked.
import type { WebSocket } from 'ws'
import { ApiError } from '../../../shared/errors.ts'
import { TUNNEL_LIMITS } from '../../../shared/limits.ts'
import { CHUNKS_PROTOCOL_VERSION } from '../../../shared/protocol.ts'
import { BodyReceiver, BodySender } from '../../../shared/tunnel-bodies.ts'
import {
  type AgentMessage,
  type CoordinatorMessage,
  formatMessage,
  InvalidMessageError,
} from '../../../shared/tunnel-messages.ts'
import { createTooLargeError, createVersionError } from './agent-errors.ts'
import { createTimeoutError, withDeadline } from './deadline.ts'
import type { TunnelCall, TunnelCallResponse } from './types.ts'

type ResponseMessage = Extract<AgentMessage, { type: 'response' }>

const acceptMessage = () => TUNNEL_LIMITS.messageBytes

type OpenCall = Required<Pick<TunnelCall, 'maxBytes'>> & {
  resolve(response: TunnelCallResponse): void
  reject(error: unknown): void
  /** Rejects, and makes the agent stop. The id stays open. */
  cancel(error: unknown): void
}

export class Calls {
  readonly #ws: WebSocket
  readonly #hasChunks: boolean
  /** undefined: the call has been cancelled, and its response will be discarded. */
  readonly #open = new Map<number, OpenCall | undefined>()
  readonly #responses: BodyReceiver
  readonly #requests: BodySender
  /** Calls that wait for the response to another one. */
  readonly #waiting = new Set<() => void>()
  #closed: ApiError | undefined
  #lastId = 0

  constructor(ws: WebSocket, protocolVersion: number) {
    this.#ws = ws
    this.#hasChunks = protocolVersion >= CHUNKS_PROTOCOL_VERSION
    this.#responses = new BodyReceiver((message) => this.#send(message))
    this.#requests = new BodySender((message, onSent) => ws.send(message, onSent))
  }

  /** See Tunnel. */
  call(call: TunnelCall): Promise<TunnelCallResponse> {
    if (this.#open.size < TUNNEL_LIMITS.openCalls) return this.#start(call)
    return withDeadline(call.timeoutMs, call.signal, async (signal) => {
      while (this.#open.size >= TUNNEL_LIMITS.openCalls && this.#closed === undefined)
        await this.#waitForResponse(signal)
      const response = this.#start({ ...call, signal })
      // The call may have been aborted meanwhile, and then occupies no id.
      if (this.#open.size < TUNNEL_LIMITS.openCalls) this.#resumeNext()
      return response
    })
  }

  /** @throws InvalidMessageError */
  receive(message: AgentMessage, body: Buffer<ArrayBuffer>): void {
    if (body.length > TUNNEL_LIMITS.messageBytes) throw new InvalidMessageError('a body is too large')
    if (message.type === 'window') this.#requests.grant(message)
    else if (message.type === 'chunk') this.#responses.receive(message.id, body)
    else if (message.type === 'reset') this.#receiveReset(message.id)
    else this.#receiveResponse(message, body)
  }

  /** Rejects all calls. */
  close(error: ApiError): void {
    this.#closed = error
    for (const call of this.#open.values()) call?.reject(error)
    this.#open.clear()
    this.#responses.close()
    this.#requests.close()
    for (const resume of this.#waiting) resume()
  }

  /** The response is complete: its id is free. */
  #take(id: number): OpenCall | undefined {
    const call = this.#open.get(id)
    this.#open.delete(id)
    this.#resumeNext()
    return call
  }

  #resumeNext(): void {
    const [resume] = this.#waiting
    resume?.()
  }

  #receiveReset(id: number): void {
    if (!this.#open.has(id)) throw new InvalidMessageError('a reset of an unknown request')
    this.#requests.stop(id)
    this.#responses.remove(id)
    this.#take(id)?.reject(new ApiError('box_unreachable'))
  }

  #receiveResponse({ id, status, size, isStored }: ResponseMessage, body: Buffer<ArrayBuffer>): void {
    if (!this.#open.has(id)) throw new InvalidMessageError('a response to an unknown request')
    if (this.#responses.has(id)) throw new InvalidMessageError('a second response')
    this.#requests.stop(id)
    if (size !== undefined) {
      if (body.length > 0 || !this.#hasChunks) throw new InvalidMessageError('a size and a body')
      this.#receiveLargeResponse(id, status, size)
      return
    }
    const call = this.#take(id)
    if (isStored) {
      this.#send({ type: 'cancel', id })
      call?.reject(createVersionError())
    } else if (call !== undefined) {
      const limit = call.maxBytes(status)
      if (body.length > limit) call.reject(createTooLargeError(limit))
      else call.resolve({ status, body })
    }
  }

  #receiveLargeResponse(id: number, status: number, size: number): void {
    const call = this.#open.get(id)
    const limit = call?.maxBytes(status) ?? 0
    if (size <= limit) {
      this.#responses.expect(id, size, (body) => {
        const call = this.#take(id)
        if (body !== null) call?.resolve({ status, body })
      })
      return
    }
    this.#responses.refuse(id)
    call?.cancel(createTooLargeError(limit))
  }

  #start({
    method,
    path,
    headers,
    body = '',
    signal,
    timeoutMs,
    maxBytes = acceptMessage,
  }: TunnelCall): Promise<TunnelCallResponse> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    if (this.#closed !== undefined) return Promise.reject(this.#closed)
    const size = Buffer.byteLength(body)
    const isLarge = size > TUNNEL_LIMITS.messageBytes
    if (isLarge && !this.#hasChunks) return Promise.reject(createVersionError())
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const onAbort = () => call.cancel(signal?.reason)
      const timer = setTimeout(() => call.cancel(createTimeoutError()), timeoutMs)
      const stopWaiting = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      }
      const call: OpenCall = {
        maxBytes,
        resolve(response) {
          stopWaiting()
          resolve(response)
        },
        reject(error) {
          stopWaiting()
          reject(error)
        },
        cancel: (error) => {
          this.#open.set(id, undefined)
          this.#requests.stop(id)
          this.#responses.discard(id)
          this.#send({ type: 'cancel', id })
          call.reject(error)
        },
      }
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#open.set(id, call)
      if (isLarge) this.#requests.start(id, Buffer.from(body), () => undefined)
      this.#send(
        { type: 'request', id, method, path, headers, ...(isLarge && { size }) },
        isLarge ? '' : body,
      )
    })
  }

  #waitForResponse(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const resume = () => {
        this.#waiting.delete(resume)
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      const onAbort = () => {
        this.#waiting.delete(resume)
        reject(signal.reason)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.#waiting.add(resume)
    })
  }

  #send(head: CoordinatorMessage, body?: string): void {
    if (this.#ws.readyState === this.#ws.OPEN) this.#ws.send(formatMessage(head, body))
  }
}
