// Assembles the modules that serve the agents' connections: tunnels, liveness checks, report streams, dial-back
// connections and draining.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LIVENESS, type LivenessSettings } from '../../../shared/liveness.ts'
import { SECRET_PATH_PREFIX, SOCKET_PATH_PREFIX, STREAM_PATH_PREFIX } from '../../../shared/protocol.ts'
import type { Db } from '../../db/open.ts'
import type { Peers } from '../../replicas/peers.ts'
import type { Replica } from '../../replicas/replica.ts'
import { createAcceptor } from './accept.ts'
import { createBoxLimits } from './box-limits.ts'
import type { Authenticate, OnAuthenticated } from './credentials.ts'
import { createDialBackForwarding } from './dial-back-forwarding.ts'
import { moveAway, moveAwayWhenUnused } from './move-away.ts'
import { OpenSessions } from './open-sessions.ts'
import type { RemoteTunnel } from './owners/owners.ts'
import type { LocalTunnels } from './owners/remote-tunnels.ts'
import { shareTunnels } from './owners/share-tunnels.ts'
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
  /** Set when other coordinators use the database. Default: this is the only one. */
  sharing?: TunnelSharing | undefined
}

export type TunnelSharing = { db: Db; peers: Peers; replica: Replica }

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
  /** The tunnel of the box at another coordinator; undefined: it is here, or there is none. */
  owner(boxId: string): Pick<RemoteTunnel, 'replicaId'> | undefined
  /** The same, as the database has it: for when that coordinator responds that it is not there. */
  readOwner(boxId: string): Promise<Pick<RemoteTunnel, 'replicaId'> | undefined>
  /** The tunnels at this coordinator. */
  listLocal(): Iterable<Session>
  /**
   * Closes the tunnel of a box, and makes its agent connect again, to any coordinator. Requests wait meanwhile. Returns false, and
   * does nothing, when the tunnel is not here or a request is in flight.
   */
  moveAway(boxId: string, reconnectAfterMs: number): boolean
  /**
   * Holds further requests, waits for those in flight, and moves the agent away: requests that arrive meanwhile wait. Resolves to
   * false, and the tunnel stays, when it was in use all the time. true: the tunnel is not here any more.
   */
  moveAwayWhenUnused(boxId: string, waitMs: number): Promise<boolean>
  /** Rejects new tunnels from now on: agents connect to other coordinators. */
  refuse(): void
  /** Reads the tunnels of the other coordinators, if there are any. */
  start(): Promise<void>
  /** Rejects new tunnels and requests, waits for those in flight (bounded), and closes each tunnel with a reconnect delay. */
  drain(): Promise<void>
  /** Closes everything immediately. */
  close(): Promise<void>
}

export function createAgentConnections(options: AgentConnectionsOptions): AgentConnections {
  const { log, clock, authenticate, ingest, random = Math.random, liveness = LIVENESS } = options
  const { dialBackTimeoutMs = 10_000, transferIdleTimeoutMs: idleTimeoutMs, probeTimeoutMs = 3_000 } = options
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
  const { sharing } = options
  const forwarding = sharing && createDialBackForwarding(sharing.peers, sharing.replica.id)
  const dialBackOptions = { log, authenticate, dialBackTimeoutMs, onAuthenticated, forwarding }
  const streams = createStreams({ ...dialBackOptions, limits })
  const sockets = createSockets(dialBackOptions)
  const secretSockets = createSecretSockets({ log, clock, authenticate, onAuthenticated })
  const transfers = createTransfers({
    ...dialBackOptions,
    ...(idleTimeoutMs !== undefined && { idleTimeoutMs }),
  })
  const retryOptions = options.reportRetryMs === undefined ? {} : { retryMs: options.reportRetryMs }
  const local: LocalTunnels = {
    get(boxId) {
      const session = registry.get(boxId)
      if (session === undefined) throw new ApiError('box_unreachable')
      return session
    },
    async probe(boxId) {
      const session = registry.get(boxId)
      if (session === undefined) return false
      const isResponsive = await session.isResponsive(probeTimeoutMs)
      if (!isResponsive) session.destroy('unresponsive while another agent connected')
      return isResponsive
    },
    async flushReports(boxId, ms) {
      const deadline = performance.now() + ms
      const session = await registry.wait(boxId, ms)
      await reportReaders.get(session)?.flush(deadline - performance.now())
    },
    restartAgent: (boxId, buildId) => restartAgent(registry, boxId, buildId),
    disconnect(boxId, reason, { reconnect }) {
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
  }
  const shared = sharing && shareTunnels({ ...sharing, log, registry, sessions, local })
  const acceptor = createAcceptor({
    others: shared,
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
    probeTimeoutMs,
    handshakeTimeoutMs: options.handshakeTimeoutMs ?? 10_000,
    isDraining: () => sessions.isDraining || sharing?.replica.isLeaseValid === false,
    reconnectAfterMs: () => sessions.reconnectAfterMs(),
    observeRequest: options.observeRequest,
    onReject: options.onReject,
    onAuthenticated: options.onAuthenticated,
    onOpen: (session) => sessions.add(session),
    onActive(session) {
      reportReaders.set(session, startReportReader(session, { log, clock, ingest, limits, ...retryOptions }))
    },
  })

  /** undefined: the tunnel of the box is here, or there is none. */
  const remoteOf = (boxId: string) => (registry.get(boxId) === undefined ? shared?.remote : undefined)

  return {
    current: (boxId) => registry.get(boxId) ?? shared?.remote.find(boxId),
    local: registry.get,
    owner: (boxId) => (registry.get(boxId) === undefined ? shared?.owners.find(boxId) : undefined),
    listLocal: registry.all,
    moveAway: (boxId, reconnectAfterMs) => moveAway(registry, boxId, reconnectAfterMs),
    moveAwayWhenUnused: (boxId, waitMs) => moveAwayWhenUnused(registry, boxId, waitMs),
    refuse: () => sessions.refuse(),
    readOwner: async (boxId) => shared?.owners.findAgain(boxId),
    wait: shared?.wait ?? registry.wait,
    on: (event, listener) => void registry.events.on(event, listener as never),
    off: (event, listener) => void registry.events.off(event, listener as never),
    async flushReports(boxId, ms) {
      const deadline = performance.now() + ms
      if (shared) await shared.wait(boxId, ms)
      const remainingMs = Math.max(0, deadline - performance.now())
      await (remoteOf(boxId)?.flushReports(boxId, remainingMs) ?? local.flushReports(boxId, remainingMs))
    },
    disconnect(boxId, reason, options = {}) {
      remoteOf(boxId)?.disconnect(boxId, reason, options)
      local.disconnect(boxId, reason, options)
    },
    restartAgent: (boxId, buildId) =>
      remoteOf(boxId)?.restartAgent(boxId, buildId) ?? local.restartAgent(boxId, buildId),
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
    start: async () => shared?.start(),
    async close() {
      shared?.close()
      transfers.close()
      streams.close()
      sockets.close()
      secretSockets.close()
      acceptor.close()
      sessions.close()
    },
  }
}
