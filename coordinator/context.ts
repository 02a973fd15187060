// Everything a coordinator is made of, in one object that is passed on explicitly.
import type { Logger } from 'pino'
import type { Clock } from '../shared/clock.ts'
import { createKeyFinder } from './account/keys.ts'
import { type AccountService, createAccountService } from './account/service.ts'
import { type BoxService, createBoxService } from './boxes/service.ts'
import { type Commands, createCommands } from './commands/commands.ts'
import type { Config } from './config.ts'
import type { Db } from './db/open.ts'
import type { EdgeContext } from './edge/context.ts'
import { createEdgeLimiter } from './edge/limits.ts'
import type { FindKey } from './http/auth.ts'
import { createAgentAuthenticator } from './lifecycle/agents.ts'
import { createHeartbeats, type Heartbeats } from './lifecycle/heartbeats.ts'
import { createLifecycle, type Lifecycle, type LifecycleOptions } from './lifecycle/lifecycle.ts'
import type { Provider } from './lifecycle/provider.ts'
import { createReportQueue, type ReportQueue } from './lifecycle/report-queue.ts'
import { createOperationService, type OperationService } from './operations/service.ts'
import { createTunnels, type TunnelHub, type TunnelsOptions } from './tunnel/tunnels.ts'
import type { Tunnels } from './tunnel/types.ts'

export type Urls = {
  /** Where the boxes' agents reach it. An origin. */
  agents: string
  /** Where clients reach it. An origin. */
  public: string
}

export type Base = {
  config: Config
  log: Logger
  clock: Clock
  db: Db
  provider: Provider
  urls: Urls
}

export type Context = Base & {
  findKey: FindKey
  /** Accepts the agents' connections. */
  hub: TunnelHub
  heartbeats: Heartbeats
  reports: ReportQueue
  commands: Commands
  lifecycle: Lifecycle
  boxes: BoxService
  operations: OperationService
  account: AccountService
  edge: EdgeContext
  /** Ends what would stay open for as long as its client likes. */
  endStreams(): void
}

export type ContextOverrides = {
  /** Machines in memory bring tunnels of their own. */
  tunnels?: Tunnels
  /** How soon a silent box or transfer is given up. */
  hub?: Partial<Pick<TunnelsOptions, 'liveness' | 'transferIdleMs'>>
  lifecycle?: Partial<Pick<LifecycleOptions, 'leaseMs' | 'connectMs' | 'backoff' | 'machines' | 'lostMs'>>
}

/** What is in flight has had its time when the tunnels drain. */
const TUNNEL_DRAIN_MS = 500

export function createContext(base: Base, overrides: ContextOverrides = {}): Context {
  const { config, log, clock, db, provider, urls } = base
  const closing = new AbortController()
  const heartbeats = createHeartbeats({ db, clock, log })
  const commands = createCommands({
    db,
    clock,
    log,
    boxes: { resolve: (actor, boxId) => boxes.resolve(actor, boxId) },
    retention: {
      days: config.commandDays,
      records: config.commandRecords,
      outputBytes: config.commandOutputMiB * 1024 * 1024,
    },
  })
  const reports = createReportQueue(db, commands.reported)
  const hub = createTunnels({
    ...overrides.hub,
    log,
    clock,
    authenticate: createAgentAuthenticator(db),
    ingest: {
      apply: (boxId, epoch, batch) => reports.apply({ boxId, epoch, reports: batch }),
      heartbeat: (boxId, vitals) => heartbeats.record(boxId, vitals),
    },
    drainMs: TUNNEL_DRAIN_MS,
  })
  const tunnels = overrides.tunnels ?? hub
  const lifecycle = createLifecycle({
    ...overrides.lifecycle,
    db,
    clock,
    log,
    provider,
    tunnels,
    settled: commands.settled,
    // Agents of this machine need not go by the public address, which may be a proxy that is not up yet.
    coordinatorUrl: urls.agents,
  })
  const boxes = createBoxService({
    db,
    clock,
    poke: lifecycle.poke,
    connected: (boxId) => tunnels.current(boxId) !== undefined,
    heartbeat: heartbeats.latest,
  })
  return {
    ...base,
    findKey: createKeyFinder({ db, clock }),
    hub,
    heartbeats,
    reports,
    commands,
    lifecycle,
    boxes,
    operations: createOperationService({ db, clock }),
    account: createAccountService({ db, boxes, edgeUrl: urls.public }),
    endStreams: () => closing.abort(),
    edge: {
      closing: closing.signal,
      limiter: createEdgeLimiter(
        {
          requestsPerSecond: config.edgeRate,
          concurrency: config.edgeConcurrency,
          streams: config.edgeStreams,
        },
        clock,
      ),
      tunnels,
      transfers: hub.transfers,
      streams: hub.streams,
      boxes,
      recorder: commands.recorder,
      async waitUntilRunning(boxId, ms, signal) {
        await lifecycle.waitUntilRunning(boxId, ms, signal)
      },
    },
  }
}
