// All boxes' tunnels of this coordinator, put together: accepting, watching, reports, transfers, drain.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import { LIVENESS, type LivenessSettings } from '../../shared/liveness.ts'
import { STREAM_PATH } from '../../shared/protocol.ts'
import { createAcceptor } from './accept.ts'
import { createAttemptLimit } from './attempt-limit.ts'
import type { Authenticate } from './credentials.ts'
import { createRegistry } from './registry.ts'
import { type FollowOptions, followReports, type Ingest } from './reports.ts'
import type { Session } from './session.ts'
import { createStreams } from './streams.ts'
import { createTransfers } from './transfers.ts'
import type { Streams, Transfers, Tunnels } from './types.ts'

export type TunnelsOptions = {
  log: Logger
  clock: Clock
  authenticate: Authenticate
  ingest: Ingest
  random?: () => number
  liveness?: LivenessSettings
  /** See AcceptorOptions. */
  incumbentAnswerMs?: number
  helloMs?: number
  transferDialMs?: number
  transferIdleMs?: number
  reportRetryMs?: FollowOptions['retryMs']
  /** drain(): how long requests in flight may go on. */
  drainMs?: number
  /** Over how long the return of agents that were sent away is spread; by default it grows with their number. */
  reconnectSpreadMs?: number
}

export type TunnelHub = Tunnels & {
  /** For the http server's 'upgrade'. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** For every request under TRANSFER_PATH. Reads the raw request: no body parser may come before. */
  handleTransfer(request: IncomingMessage, response: ServerResponse): void
  readonly transfers: Transfers
  readonly streams: Streams
  /** Takes no new tunnels or requests, lets those in flight end (bounded), and sends each agent away. */
  drain(): Promise<void>
  /** Ends everything at once. */
  close(): Promise<void>
}

/** A restart takes about this long; then 200 agents a second come back, which a coordinator takes with TLS too. */
const RETURN_AFTER_MS = 500
const SPREAD_PER_AGENT_MS = 5
const MAX_SPREAD_MS = 60_000

export function createTunnels(options: TunnelsOptions): TunnelHub {
  const { log, clock, authenticate, ingest, random = Math.random, liveness = LIVENESS } = options
  const { drainMs = 10_000 } = options
  const registry = createRegistry()
  const live = new Set<Session>()
  const dialMs = options.transferDialMs ?? 10_000
  const streams = createStreams({ log, authenticate, dialMs })
  const transfers = createTransfers({
    log,
    authenticate,
    dialMs,
    ...(options.transferIdleMs === undefined ? {} : { idleMs: options.transferIdleMs }),
  })
  const retry = options.reportRetryMs === undefined ? {} : { retryMs: options.reportRetryMs }
  let draining = false

  let spreadMs = options.reconnectSpreadMs ?? 0
  const reconnectAfterMs = () => Math.floor(RETURN_AFTER_MS + spreadMs * random())
  const acceptor = createAcceptor({
    log,
    authenticate,
    registry,
    attempts: createAttemptLimit(clock),
    liveness,
    random,
    incumbentAnswerMs: options.incumbentAnswerMs ?? 3000,
    helloMs: options.helloMs ?? 10_000,
    draining: () => draining,
    reconnectAfterMs,
    onOpen(session) {
      live.add(session)
      void session.ended.then(() => live.delete(session))
    },
    onActive: (session) => void followReports(session, { log, ingest, ...retry }),
  })

  // One timer for all tunnels: a thousand idle ones cost a loop over a thousand counters.
  let lastCheck = clock.now()
  const timer = setInterval(() => {
    const now = clock.now()
    const elapsedMs = now - lastCheck
    lastCheck = now
    for (const session of live) session.check(elapsedMs)
  }, liveness.tickMs)

  async function drainOne(session: Session, until: number): Promise<void> {
    session.retire()
    while (session.inFlight() > 0 && clock.now() < until) await sleep(20)
    session.sendAway(reconnectAfterMs())
    // An agent that does not answer the goodbye within a second is cut off.
    await Promise.race([session.ended, sleep(1000, undefined, { ref: false })])
    session.destroy('the coordinator is stopping')
  }

  return {
    current: (boxId) => registry.get(boxId),
    wait: registry.wait,
    on: (event, listener) => void registry.events.on(event, listener as never),
    off: (event, listener) => void registry.events.off(event, listener as never),
    disconnect(boxId, reason) {
      registry.get(boxId)?.destroy(reason)
      for (const { cut } of [transfers, streams]) cut(boxId)
    },
    handleUpgrade(request, socket, head) {
      const { handleUpgrade } = request.url?.startsWith(STREAM_PATH) ? streams : acceptor
      handleUpgrade(request, socket, head)
    },
    handleTransfer: transfers.handleTransfer,
    transfers,
    streams,
    async drain() {
      draining = true
      spreadMs = options.reconnectSpreadMs ?? Math.min(MAX_SPREAD_MS, live.size * SPREAD_PER_AGENT_MS)
      const until = clock.now() + drainMs
      await Promise.all([...live].map((session) => drainOne(session, until)))
    },
    async close() {
      draining = true
      clearInterval(timer)
      transfers.close()
      streams.close()
      acceptor.close()
      for (const session of [...live]) session.destroy('the coordinator is stopping')
    },
  }
}
