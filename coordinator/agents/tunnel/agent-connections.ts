// Assembles the modules that serve the agents' connections: tunnels, liveness checks, report streams, dial-back
// connections and draining.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { LIVENESS, type LivenessSettings } from '../../../shared/liveness.ts'
import { SECRET_PATH_PREFIX, SOCKET_PATH_PREFIX, STREAM_PATH_PREFIX } from '../../../shared/protocol.ts'
import { createAcceptor } from './accept.ts'
import { createBoxLimits } from './box-limits.ts'
import type { Authenticate, OnAuthenticated } from './credentials.ts'
import { OpenSessions } from './open-sessions.ts'
import { createRegistry } from './registry.ts'
import { type Ingest, type ReportReader, type ReportStreamOptions, startReportReader } from './reports.ts'
import { restartAgent } from './restart-agent.ts'
import { createSecretSockets } from './secret-sockets.ts'
import type { Session } from './session.ts'
import { createSockets } from './sockets.ts'
import { createStreams } from './streams.ts'
import { createTransfers } from './transfers.ts'
import type {
  MachineAgents,
  SecretConnections,
  Sockets,
  Streams,
  Transfers,
  TunnelRequestObserver,
  Tunnels,
} from './types.ts'

export type AgentConnectionsOptions = {
  log: Logger
  clock: Clock
  authenticate: Authenticate
  /** See AcceptorOptions. */
  machines?: MachineAgents | undefined
  sign?: ((text: string) => Promise<string>) | undefined
  ingest: Ingest
  /** 0 or more, less than 1. Default: Math.random. */
  random?: () => number
  liveness?: LivenessSettings
  /** See AcceptorOptions. Default: 3 s. */
  probeTimeoutMs?: number
  /** See AcceptorOptions. Default: 10 s. */
  handshakeTimeoutMs?: number
  /** See AcceptorOptions. */
  acceptedVersions?: readonly number[]
  /** How long an agent may take to open a dial-back connection. Default: 10 s. */
  dialBackTimeoutMs?: number
  /** An idle transfer is closed after this time. Default: 2 minutes. */
  transferIdleTimeoutMs?: number
  reportRetryMs?: ReportStreamOptions['retryMs']
  /** drain(): how long requests in flight may continue. Default: 10 s. */
  drainMs?: number
  /** Agents reconnect at a random time within this period after a drain. Default: grows with the number of tunnels. */
  reconnectSpreadMs?: number
  /** See SessionOptions and AcceptorOptions. */
  observeRequest?: TunnelRequestObserver | undefined
  onReject?: ((code: string) => void) | undefined
  onAuthenticated?: OnAuthenticated | undefined
  trustedProxies?: readonly string[] | undefined
}

export type AgentConnections = Tunnels & {
  /** Handles the 'upgrade' events of the HTTP server. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Handles every request under TRANSFER_PATH_PREFIX. Reads the raw request: no body parser may run before. */
  handleTransfer(request: IncomingMessage, response: ServerResponse): void
  readonly transfers: Transfers
  readonly streams: Streams
  readonly sockets: Sockets
  readonly secretConnections: SecretConnections
  /**
   * Restarts the connected agent. Requests that are sent meanwhile wait for its next tunnel. No request may be in flight.
   * Resolves to false when the agent keeps running, because a terminal session that cannot continue with the next agent, or
   * a command with stdin runs: its tunnel stays, and nothing is emitted. Rejects when no agent is connected, while another
   * restart is requested, or when the request fails.
   * @param buildId an installed build, to which the machine of the agent switches
   */
  restartAgent(boxId: string, buildId?: string): Promise<boolean>
  /** Rejects new tunnels and requests, waits for those in flight (bounded), and closes each tunnel with a reconnect delay. */
  drain(): Promise<void>
  /** Closes everything immediately. */
  close(): Promise<void>
}

export function createAgentConnections(options: AgentConnectionsOptions): AgentConnections {
  const { log, clock, authenticate, ingest, random = Math.random, liveness = LIVENESS } = options
  const { dialBackTimeoutMs = 10_000, transferIdleTimeoutMs: idleTimeoutMs } = options
  const registry = createRegistry()
  const limits = createBoxLimits(clock)
  const sessions = new OpenSessions({
    clock,
    random,
    tickMs: liveness.tickMs,
    drainMs: options.drainMs ?? 10_000,
    reconnectSpreadMs: options.reconnectSpreadMs,
  })
  const reportReaders = new WeakMap<Session, ReportReader>()
  const { onAuthenticated } = options
  const dialBackOptions = { log, authenticate, dialBackTimeoutMs, onAuthenticated }
  const streams = createStreams({ ...dialBackOptions, limits })
  const sockets = createSockets(dialBackOptions)
  const secretSockets = createSecretSockets({ log, clock, authenticate, onAuthenticated })
  const transfers = createTransfers({
    ...dialBackOptions,
    ...(idleTimeoutMs !== undefined && { idleTimeoutMs }),
  })
  const retryOptions = options.reportRetryMs === undefined ? {} : { retryMs: options.reportRetryMs }
  const acceptor = createAcceptor({
    log,
    clock,
    trustedProxies: options.trustedProxies,
    authenticate,
    machines: options.machines,
    sign: options.sign,
    registry,
    limits,
    liveness,
    random,
    acceptedVersions: options.acceptedVersions,
    probeTimeoutMs: options.probeTimeoutMs ?? 3000,
    handshakeTimeoutMs: options.handshakeTimeoutMs ?? 10_000,
    isDraining: () => sessions.isDraining,
    reconnectAfterMs: () => sessions.reconnectAfterMs(),
    observeRequest: options.observeRequest,
    onReject: options.onReject,
    onAuthenticated: options.onAuthenticated,
    onOpen: (session) => sessions.add(session),
    onActive(session) {
      reportReaders.set(session, startReportReader(session, { log, clock, ingest, limits, ...retryOptions }))
    },
  })

  return {
    current: (boxId) => registry.get(boxId),
    wait: registry.wait,
    on: (event, listener) => void registry.events.on(event, listener as never),
    off: (event, listener) => void registry.events.off(event, listener as never),
    async flushReports(boxId, ms) {
      const deadline = performance.now() + ms
      const session = await registry.wait(boxId, ms)
      await reportReaders.get(session)?.flush(deadline - performance.now())
    },
    disconnect(boxId, reason, { reconnect } = {}) {
      const session = registry.get(boxId)
      if (session !== undefined) {
        // The box has no tunnel from now on, also while the close message is sent.
        registry.remove(session, reason)
        if (reconnect === 'immediately') session.destroyForReconnect(0, reason)
        else session.destroy(reason)
      }
      transfers.disconnect(boxId)
      streams.disconnect(boxId)
      sockets.disconnect(boxId)
      secretSockets.disconnect(boxId)
    },
    restartAgent: (boxId, buildId) => restartAgent(registry, boxId, buildId),
    handleUpgrade(request, socket, head) {
      const path = request.url ?? ''
      if (path.startsWith(STREAM_PATH_PREFIX)) streams.handleUpgrade(request, socket, head)
      else if (path.startsWith(SOCKET_PATH_PREFIX)) sockets.handleUpgrade(request, socket, head)
      else if (path.startsWith(SECRET_PATH_PREFIX)) secretSockets.handleUpgrade(request, socket, head)
      else acceptor.handleUpgrade(request, socket, head)
    },
    handleTransfer: transfers.handleTransfer,
    transfers,
    streams,
    sockets,
    secretConnections: secretSockets,
    drain: () => sessions.drain(),
    async close() {
      transfers.close()
      streams.close()
      sockets.close()
      secretSockets.close()
      acceptor.close()
      sessions.close()
    },
  }
}
