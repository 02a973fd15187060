// One agent's connection: messages over its WebSocket, with the coordinator as the client.
import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { ApiError } from '../../../shared/errors.ts'
import { checkLiveness, type LivenessSettings, newLivenessState } from '../../../shared/liveness.ts'
import {
  agentMessageSchema,
  InvalidMessageError,
  MAX_AGENT_HEAD_BYTES,
  parseMessage,
} from '../../../shared/tunnel-messages.ts'
import type { BoxLimits } from './box-limits.ts'
import { Calls } from './calls.ts'
import type { Tunnel, TunnelCall, TunnelCallResponse, TunnelRequestObserver } from './types.ts'

/** A larger send buffer means that the agent has stopped reading. */
const MAX_UNSENT_BYTES = 32 * 1024 * 1024
/** How long a closing connection stays open for an agent that does not respond. */
const LINGER_MS = 1_000

export type Identity = Pick<
  Tunnel,
  'boxId' | 'generation' | 'instanceId' | 'agentVersion' | 'protocolVersion' | 'failedBuild' | 'platform'
>

export type SessionOptions = {
  ws: WebSocket
  socket: Socket
  identity: Identity
  liveness: LivenessSettings
  random: () => number
  limits: Pick<BoxLimits, 'allowMessage' | 'allowControlFrame' | 'expectResponse' | 'backOff'>
  /** Observes the requests of clients. */
  observeRequest?: TunnelRequestObserver | undefined
}

export type Session = Tunnel & {
  /** Resolves when the agent has responded for the first time. Rejects when the session closes before. */
  readonly ready: Promise<void>
  /** Resolves with the reason when the session has closed. */
  readonly closed: Promise<string>
  /** As call(), for requests that no client made: they do not raise the limit of the box's messages. */
  callForReports: Tunnel['call']
  /** Whether the agent sends anything within `ms` after a ping. */
  isResponsive(ms: number): Promise<boolean>
  /** Aborts when the session accepts no more requests: retired or closed. */
  readonly retiring: AbortSignal
  /** Requests without a complete response. */
  inFlight(): number
  /** Whether requests other than those for reports are without a complete response. */
  isInUse(): boolean
  /** One step of the liveness check. */
  runLivenessCheck(elapsedMs: number): void
  /** Rejects further requests. */
  retire(): void
  /** Sends the agent its reconnect delay, and waits for the agent to close the connection. */
  closeForReconnect(reconnectAfterMs: number): void
  /** Sends the agent its reconnect delay, also to a frozen agent, and closes the session immediately. */
  destroyForReconnect(reconnectAfterMs: number, reason: string): void
  destroy(reason: string): void
}

export function openSession(options: SessionOptions): Session {
  const { ws, socket, identity, liveness, random, limits, observeRequest } = options
  const { boxId } = identity
  const calls = new Calls(ws, identity.protocolVersion)
  const livenessState = newLivenessState(liveness, random)
  const retirement = new AbortController()
  let closeReason: string | undefined
  let inFlight = 0
  let reportCalls = 0

  const { promise: closed, resolve: resolveClosed } = Promise.withResolvers<string>()
  const destroy = (reason: string) => {
    if (closeReason !== undefined) return
    closeReason = reason
    retirement.abort()
    release(reason)
    ws.terminate()
    resolveClosed(reason)
  }
  function release(reason: string): void {
    calls.close(new ApiError('box_unreachable', undefined, { cause: new Error(reason) }))
  }
  function disconnectFlood(what: string): void {
    if (closeReason !== undefined) return
    destroy(`the agent sent too many ${what}`)
    limits.backOff(boxId)
  }
  ws.on('message', (data: Buffer<ArrayBuffer>) => {
    if (closeReason !== undefined) return
    if (!limits.allowMessage(boxId)) return disconnectFlood('messages')
    try {
      const { head, body } = parseMessage(agentMessageSchema, data, MAX_AGENT_HEAD_BYTES)
      calls.receive(head, body)
    } catch (error) {
      if (!(error instanceof InvalidMessageError)) throw error
      destroy(`the agent sent an invalid message: ${error.message}`)
    }
  })
  ws.on('error', (error) => destroy(`WebSocket: ${error.message}`))
  ws.once('close', (code) => destroy(`the connection closed (code ${code})`))
  // The listener replaces autoPong, which would answer the pings of a flood.
  ws.on('ping', (data) => {
    if (limits.allowControlFrame(boxId)) ws.pong(data)
    else disconnectFlood('pings')
  })
  ws.on('pong', () => {
    if (!limits.allowControlFrame(boxId)) disconnectFlood('pongs')
  })

  function closeForReconnect(reconnectAfterMs: number): void {
    retirement.abort()
    ws.close(1012, JSON.stringify({ reconnectAfterMs }))
  }

  const ready = Promise.race([
    new Promise<void>((resolve) => ws.once('pong', () => resolve())),
    closed.then((reason) => {
      throw new ApiError('box_unreachable', undefined, { cause: new Error(reason) })
    }),
  ])
  ready.catch(() => undefined)
  ws.ping()

  function call(call: TunnelCall): Promise<TunnelCallResponse> {
    if (retirement.signal.aborted) return Promise.reject(new ApiError('box_unreachable'))
    inFlight += 1
    return calls.call(call).finally(() => {
      inFlight -= 1
    })
  }

  return {
    ...identity,
    ready,
    closed,
    retiring: retirement.signal,
    call(toAgent) {
      limits.expectResponse(boxId)
      return observeRequest ? observeRequest(toAgent, () => call(toAgent)) : call(toAgent)
    },
    callForReports(toAgent) {
      reportCalls += 1
      return call(toAgent).finally(() => {
        reportCalls -= 1
      })
    },
    isResponsive(ms) {
      const bytesBefore = socket.bytesRead
      return new Promise((resolve) => {
        const settle = (isAlive: boolean) => {
          clearTimeout(timer)
          ws.off('pong', onPong)
          resolve(isAlive)
        }
        const onPong = () => settle(true)
        const timer = setTimeout(() => settle(socket.bytesRead !== bytesBefore), ms)
        ws.on('pong', onPong)
        void closed.then(() => settle(false))
        if (ws.readyState === ws.OPEN) ws.ping()
      })
    },
    inFlight: () => inFlight,
    isInUse: () => inFlight > reportCalls,
    runLivenessCheck(elapsedMs) {
      if (ws.bufferedAmount > MAX_UNSENT_BYTES) return destroy('the agent does not read')
      const observed = { bytes: socket.bytesRead, elapsedMs }
      const verdict = checkLiveness(livenessState, observed, liveness, random)
      if (verdict === 'dead') destroy('liveness timeout')
      if (verdict === 'ping' && ws.readyState === ws.OPEN) ws.ping()
    },
    retire: () => retirement.abort(),
    closeForReconnect,
    destroyForReconnect(reconnectAfterMs, reason) {
      if (closeReason !== undefined) return
      closeReason = reason
      closeForReconnect(reconnectAfterMs)
      release(reason)
      resolveClosed(reason)
      setTimeout(() => ws.terminate(), LINGER_MS).unref()
    },
    destroy,
  }
}
