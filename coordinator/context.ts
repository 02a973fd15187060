// Creates the coordinator's services and connects them. The context object is passed explicitly.
import type { Logger } from 'pino'
import type { Clock } from '../shared/clock.ts'
import { createKeyFinder } from './account/keys.ts'
import { type AccountService, createAccountService } from './account/service.ts'
import { type BoxService, createBoxService } from './boxes/service.ts'
import { type Commands, createCommands } from './commands/commands.ts'
import type { Config } from './config.ts'
import type { DiskReserve } from './db/disk-reserve.ts'
import type { Db } from './db/open.ts'
import type { EdgeContext } from './edge/context.ts'
import { createEdgeLimiter } from './edge/limits.ts'
import { createResponseParser } from './edge/response-parser.ts'
import type { FindKey } from './http/auth.ts'
import { createAgentUpgrades } from './lifecycle/agent-upgrades.ts'
import { createAgentAuthenticator } from './lifecycle/agents.ts'
import { createHeartbeats, type Heartbeats } from './lifecycle/heartbeats.ts'
import { createLifecycle, type Lifecycle, type LifecycleOptions } from './lifecycle/lifecycle.ts'
import type { Provider } from './lifecycle/provider.ts'
import { createReportQueue, type ReportQueue } from './lifecycle/report-queue.ts'
import type { BoxNames } from './log/logger.ts'
import { createOperationService, type OperationService } from './operations/service.ts'
import {
  type AgentConnections,
  type AgentConnectionsOptions,
  createAgentConnections,
} from './tunnel/agent-connections.ts'
import type { Streams, Tunnels } from './tunnel/types.ts'

export type Urls = {
  /** The origin at which agents reach the coordinator. */
  agents: string
  /** The origin at which clients reach the coordinator. */
  public: string
}

export type BaseContext = {
  config: Config
  log: Logger
  boxNames: BoxNames
  clock: Clock
  db: Db
  diskReserve: DiskReserve
  provider: Provider
  urls: Urls
}

export type Context = BaseContext & {
  findKey: FindKey
  /** Accepts the agents' tunnels and dial-back connections. */
  agentConnections: AgentConnections
  heartbeats: Heartbeats
  reports: ReportQueue
  commands: Commands
  lifecycle: Lifecycle
  boxes: BoxService
  operations: OperationService
  account: AccountService
  edge: EdgeContext
  /** Closes the event streams, which would otherwise stay open until their clients disconnect. */
  closeStreams(): void
  /** Agents of other versions are not restarted any more. */
  stopAgentUpgrades(): void
}

export type ContextOverrides = {
  /** For tests with in-memory machines, which have their own tunnels. */
  tunnels?: Tunnels
  streams?: Streams
  /** Timeouts of silent agents and idle transfers. */
  agentConnections?: Partial<Pick<AgentConnectionsOptions, 'liveness' | 'transferIdleTimeoutMs'>>
  lifecycle?: Partial<
    Pick<
      LifecycleOptions,
      'leaseMs' | 'connectTimeoutMs' | 'backoff' | 'maxConcurrentMachines' | 'disconnectGraceMs'
    >
  >
}

/** Short, because requests in flight have already had the HTTP drain's time. */
const TUNNEL_DRAIN_MS = 500

export function createContext(base: BaseContext, overrides: ContextOverrides = {}): Context {
  const { config, log, boxNames, clock, db, diskReserve, provider, urls } = base
  const closing = new AbortController()
  const heartbeats = createHeartbeats({ db, clock, log })
  const commands = createCommands({
    db,
    clock,
    log,
    boxes: { find: (actor, boxId) => boxes.find(actor, boxId) },
    retention: {
      days: config.commandDays,
      records: config.commandRecords,
      outputBytes: config.commandOutputMiB * 1024 * 1024,
    },
  })
  const reports = createReportQueue(db, commands.reportHandler)
  const agentConnections = createAgentConnections({
    ...overrides.agentConnections,
    log,
    clock,
    authenticate: createAgentAuthenticator(db),
    ingest: {
      async apply(boxId, epoch, batch) {
        // The last space is for suspending and deleting boxes. The agents keep their reports and send them again.
        if (diskReserve.isReleased) throw new Error('the disk is full')
        await reports.apply({ boxId, epoch, reports: batch })
      },
      heartbeat: (boxId, vitals) => heartbeats.record(boxId, vitals),
    },
    drainMs: TUNNEL_DRAIN_MS,
  })
  const tunnels = overrides.tunnels ?? agentConnections
  const lifecycle = createLifecycle({
    ...overrides.lifecycle,
    db,
    clock,
    log,
    boxNames,
    provider,
    tunnels,
    // Not the public URL: that may be a proxy that has not started yet.
    coordinatorUrl: urls.agents,
  })
  const boxes = createBoxService({
    db,
    clock,
    schedule: lifecycle.schedule,
    isConnected: (boxId) => tunnels.current(boxId) !== undefined,
    latestHeartbeat: heartbeats.latest,
  })
  const limiter = createEdgeLimiter({
    requestsPerSecond: config.edgeRate,
    concurrency: config.edgeConcurrency,
    streams: config.edgeStreams,
    attachments: config.edgeAttachments,
  })
  const { agentVersion } = provider
  const agentUpgrades =
    agentVersion === undefined
      ? undefined
      : createAgentUpgrades({
          agentVersion,
          tunnels: agentConnections,
          restartAgent: agentConnections.restartAgent,
          isIdle: (boxId) => !limiter.hasRequests(boxId),
          log,
        })
  return {
    ...base,
    findKey: createKeyFinder({ db, clock }),
    agentConnections: agentConnections,
    heartbeats,
    reports,
    commands,
    lifecycle,
    boxes,
    operations: createOperationService({ db, clock }),
    account: createAccountService({ db, boxes, edgeUrl: urls.public }),
    closeStreams: () => closing.abort(),
    stopAgentUpgrades: () => agentUpgrades?.close(),
    edge: {
      closing: closing.signal,
      limiter,
      tunnels,
      transfers: agentConnections.transfers,
      streams: overrides.streams ?? agentConnections.streams,
      sockets: agentConnections.sockets,
      responseParser: createResponseParser(),
      boxes,
      commandTracker: commands.tracker,
      async waitUntilRunning(boxId, ms, signal) {
        await lifecycle.waitUntilRunning(boxId, ms, signal)
      },
    },
  }
}
