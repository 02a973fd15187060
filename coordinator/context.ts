// Creates the coordinator's services and connects them. The context object is passed explicitly.
import type { Logger } from 'pino'
import { newApiKey } from '../shared/api-key.ts'
import type { Clock } from '../shared/clock.ts'
import { createKeyService, type KeyService } from './account/key-service.ts'
import { createKeyUses, type KeyUses } from './account/key-uses.ts'
import { createKeyFinder } from './account/keys.ts'
import { type AccountService, createAccountService } from './account/service.ts'
import { type AgentAccounts, createAgentAccounts } from './accounts/agent-accounts.ts'
import { createAccount, createDefaultName } from './accounts/create-account.ts'
import { createAdmit } from './admission/admit.ts'
import type { DecideAdmission } from './admission/decide.ts'
import type { AgentBundles } from './agent-bundles/agent-bundles.ts'
import { createAgentUpgrades } from './agent-upgrades/agent-upgrades.ts'
import { createTargetFinder } from './agent-upgrades/find-target.ts'
import { type AgentService, createAgentLoader, createAgentService } from './agent-upgrades/service.ts'
import { type AuditLog, createAuditLog } from './audit/audit-log.ts'
import { createDenials, type Denials } from './audit/denials.ts'
import { createConnectRecorder } from './audit/record-connect.ts'
import {
  type AuditExport,
  type AuditExportOverrides,
  createAuditExport,
} from './audit-export/audit-export.ts'
import { type BackgroundTasks, createBackgroundTasks } from './background-tasks.ts'
import { listBoxPositions } from './box-store/box-lists.ts'
import { findBoxResource } from './box-store/boxes.ts'
import { findSnapshotResource } from './box-store/snapshots.ts'
import { createEnvironmentSender } from './boxes/environment-sender.ts'
import { createBoxFinder } from './boxes/find-box.ts'
import { createMoveBox, type MoveBox } from './boxes/move.ts'
import { deleteAllBoxes, removeAllBoxes } from './boxes/remove-all.ts'
import { createResizes, type Resizes } from './boxes/resize.ts'
import { restrictBoxesOf } from './boxes/restrict-boxes.ts'
import { type BoxService, createBoxService } from './boxes/service.ts'
import { type Commands, createCommands } from './commands/commands.ts'
import { deleteCommandsOfBox } from './commands/delete-of-box.ts'
import type { Config } from './config.ts'
import type { DiskReserve } from './db/disk-reserve.ts'
import type { Db } from './db/open.ts'
import type { EdgeContext } from './edge/context.ts'
import { createEdgeLimiter } from './edge/limits.ts'
import { createResponseParser } from './edge/response-parser.ts'
import type { CredentialFinders } from './http/auth.ts'
import { createOpenRequests, type OpenRequests } from './http/open-requests.ts'
import { createScheduler, type Scheduler } from './jobs/scheduler.ts'
import { createAgentAuthenticator } from './lifecycle/agents.ts'
import { createHeartbeats, type Heartbeats } from './lifecycle/heartbeats.ts'
import { createLifecycle, type Lifecycle, type LifecycleOptions } from './lifecycle/lifecycle.ts'
import { createMemoryPressure, type MemoryPressure } from './lifecycle/memory-pressure.ts'
import type { Providers } from './lifecycle/providers/regions.ts'
import { createReportQueue, type ReportQueue } from './lifecycle/report-queue.ts'
import { upgradedBoxes } from './lifecycle/upgraded-boxes.ts'
import type { BoxNames } from './log/logger.ts'
import { createMachineAgents } from './machines/agents.ts'
import { createMachines, type Machines } from './machines/machines.ts'
import { createDefaultSender, createMailer, type Mailer } from './mail/mailer.ts'
import { createMemberService, type MemberService } from './members/service.ts'
import { createMetrics, type Metrics } from './metrics/metrics.ts'
import { createOperationService, type OperationService } from './operations/service.ts'
import { createPolicyService, type PolicyService } from './policies/service.ts'
import { createProcessSnapshots, type ProcessSnapshots } from './process-snapshots/process-snapshots.ts'
import { createPruners } from './pruning.ts'
import { createPauseGate } from './schedules/pause-gate.ts'
import { createBoxScheduleHandlers } from './schedules/schedules.ts'
import { createSessionFinder } from './sessions/find-session.ts'
import { createSessions, type Sessions } from './sessions/sessions.ts'
import { createSnapshotService, type SnapshotService } from './snapshots/service.ts'
import { createSnapshots, type Snapshots } from './snapshots/snapshots.ts'
import type { Observers } from './telemetry/observers.ts'
import { createTicketFinder } from './tickets/find-ticket.ts'
import { createTicketService, type TicketService } from './tickets/service.ts'
import {
  type AgentConnections,
  type AgentConnectionsOptions,
  createAgentConnections,
} from './tunnel/agent-connections.ts'
import type { Streams, Tunnels } from './tunnel/types.ts'
import { createPurge } from './workspaces/purge.ts'
import { createWorkspaceService, type WorkspaceService } from './workspaces/service.ts'
import { createErasure, type Erasure } from './zero-data-retention/erasure.ts'

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
  providers: Providers
  urls: Urls
  /** Of metrics and traces. */
  observers: Observers
  /** What machines install. */
  agentBundles: AgentBundles
}

export type Context = BaseContext &
  CredentialFinders & {
    /** Accepts the agents' tunnels and dial-back connections. */
    agentConnections: AgentConnections
    heartbeats: Heartbeats
    reports: ReportQueue
    commands: Commands
    metrics: Metrics
    processSnapshots: ProcessSnapshots
    lifecycle: Lifecycle
    schedules: Scheduler
    /** Erases stored data when zero data retention is turned on. */
    erasure: Erasure
    boxes: BoxService
    snapshots: Snapshots
    snapshotService: SnapshotService
    resizes: Resizes
    moveBox: MoveBox
    operations: OperationService
    account: AccountService
    policies: PolicyService
    denials: Denials
    mailer: Mailer
    background: BackgroundTasks
    sessions: Sessions
    agentAccounts: AgentAccounts
    agents: AgentService
    audit: AuditLog
    keys: KeyService
    keyUses: KeyUses
    members: MemberService
    workspaces: WorkspaceService
    auditExport: AuditExport
    edge: EdgeContext
    openRequests: OpenRequests
    tickets: TicketService
    machines: Machines
    /** Closes the event streams, which would otherwise stay open until their clients disconnect. */
    closeStreams(): void
    /** Agents of other versions are not restarted any more. */
    stopAgentUpgrades(): void
    /** Agents do not get the variables of their boxes any more. */
    stopSendingEnvironments(): void
  }

export type ContextOverrides = {
  decideAdmission?: DecideAdmission
  memory?: MemoryPressure
  /** Prints a line on stdout. */
  print?: (line: string) => void
  /** Multiplies the limits of sign-ins per client address. Default: 1. */
  addressLimitFactor?: number
  auditExport?: AuditExportOverrides
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
const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

export function createContext(base: BaseContext, overrides: ContextOverrides = {}): Context {
  const { config, log, boxNames, clock, db, diskReserve, providers, urls, observers } = base
  const { observeIngest = (ingest) => ingest } = observers
  const closing = new AbortController()
  const scheduler = createScheduler({ db, clock, log })
  const background = createBackgroundTasks(log)
  const keyUses = createKeyUses({ db, clock, log })
  const finders = {
    findKey: createKeyFinder({ db, clock, onUse: keyUses.record }),
    findSession: createSessionFinder({ db, clock, background }),
    findTicket: createTicketFinder({ db, clock }),
  }
  const openRequests = createOpenRequests({ clock, finders })
  const mailer = createMailer({
    smtpUrl: config.smtpUrl,
    from: config.mailFrom ?? createDefaultSender(urls.public),
    log,
    print: overrides.print ?? ((line) => void process.stdout.write(`${line}\n`)),
  })
  const { addressLimitFactor } = overrides
  const sessions = createSessions({
    ...{ db, clock, mailer, background, openRequests },
    createAccount: config.signup
      ? async (trx, email) => {
          const account = { email, name: createDefaultName(email), now: clock.now() }
          return { userId: (await createAccount(trx, account)).user.id }
        }
      : null,
    ...(addressLimitFactor !== undefined && { addressLimitFactor }),
  })
  const agentAccounts = createAgentAccounts({
    ...{ db, clock, sessions, mailer, background },
    isSignupOpen: config.signup,
  })
  const heartbeats = createHeartbeats({ db, clock, log })
  const boxFinder = createBoxFinder(db)
  const commands = createCommands({
    db,
    clock,
    log,
    boxes: boxFinder,
    retention: {
      days: config.commandDays,
      records: config.commandRecords,
      outputBytes: config.commandOutputMiB * 1024 * 1024,
    },
  })
  const metrics = createMetrics({ db, clock, log, boxes: boxFinder })
  const processSnapshots = createProcessSnapshots({ db, clock, log, boxes: boxFinder })
  const reports = createReportQueue(db, {
    commands: commands.reportHandler,
    metrics: metrics.reportHandler,
    processSnapshots: processSnapshots.reportHandler,
  })
  const agentConnections = createAgentConnections({
    ...overrides.agentConnections,
    log,
    clock,
    authenticate: createAgentAuthenticator(db),
    machines: createMachineAgents(db),
    ingest: observeIngest({
      async apply(boxId, epoch, batch) {
        // The last space is for suspending and deleting boxes. The agents keep their reports and send them again.
        if (diskReserve.isReleased) throw new Error('the disk is full')
        await reports.apply({ boxId, epoch, reports: batch })
      },
      heartbeat: (boxId, vitals) => heartbeats.record(boxId, vitals),
      listeners: (boxId, ports) => heartbeats.recordPorts(boxId, ports),
    }),
    observeRequest: observers.tunnelRequests,
    onReject: observers.onAgentReject,
    drainMs: TUNNEL_DRAIN_MS,
  })
  const tunnels = overrides.tunnels ?? agentConnections
  const lifecycle = createLifecycle({
    ...overrides.lifecycle,
    db,
    clock,
    log,
    boxNames,
    providers,
    tunnels,
    // Not the public URL: that may be a proxy that has not started yet.
    coordinatorUrl: urls.agents,
    freezesBoxes: config.freezeMinutes > 0,
    observer: observers.steps,
  })
  const admit = createAdmit(overrides.decideAdmission)
  const environmentSender = createEnvironmentSender({ db, tunnels, log })
  const snapshots = createSnapshots({
    ...overrides.lifecycle,
    db,
    clock,
    log,
    providers,
    coordinatorUrl: urls.agents,
    scheduleBox: lifecycle.schedule,
    finalSnapshots: config.finalSnapshots,
  })
  lifecycle.onChange(snapshots.onBoxChange)
  const boxes = createBoxService({
    db,
    clock,
    regions: providers,
    schedule: lifecycle.schedule,
    onSchedule: scheduler.scheduleAt,
    onEnvironmentChange: environmentSender.onChange,
    isConnected: (boxId) => tunnels.current(boxId) !== undefined,
    latestHeartbeat: heartbeats.latest,
    admit,
    beforeDelete: snapshots.onBoxDelete,
  })
  const changeOptions = { db, clock, boxes, admit, schedule: lifecycle.schedule }
  const limiter = createEdgeLimiter(
    {
      requestsPerSecond: config.edgeRate,
      concurrency: config.edgeConcurrency,
      streams: config.edgeStreams,
      attachments: config.edgeAttachments,
      terminals: config.terminalLimit,
    },
    { onReject: observers.onEdgeReject },
  )
  const pauseGate = createPauseGate(limiter.hasRequests)
  const operations = createOperationService({
    db,
    clock,
    findTarget: { box_delete: findBoxResource, snapshot_delete: findSnapshotResource },
  })
  const erasure = createErasure({ db, listBoxes: (...args) => listBoxPositions(db, ...args) })
  const tickets = createTicketService({ db, clock, boxes })
  const machines = createMachines({
    ...{ db, clock, admit, defaultRegion: providers.defaultRegion },
    ...(addressLimitFactor !== undefined && { addressLimitFactor }),
  })
  const deleteHistory = [deleteCommandsOfBox, metrics.deleteOfBox, processSnapshots.deleteOfBox]
  scheduler.add(
    createBoxScheduleHandlers({
      db,
      clock,
      log,
      tunnels,
      pauseGate,
      settings: { freezeMs: config.freezeMinutes * MINUTE_MS, deepSleepMs: config.deepSleepDays * DAY_MS },
      memory: overrides.memory ?? createMemoryPressure(),
      findLastActivity(boxId) {
        const heartbeat = heartbeats.latest(boxId)
        return heartbeat ? heartbeat.at - heartbeat.vitals.idle_for_sec * 1000 : null
      },
      scheduleBox: lifecycle.schedule,
      snapshots,
    }),
  )
  scheduler.add({
    handlers: {
      expire_snapshot: snapshots.expireSnapshot,
      erase: erasure.handleSchedule,
      purge_workspace: createPurge({
        db,
        clock,
        log,
        openRequests,
        removeBoxes: (...args) => removeAllBoxes({ db, clock, schedule: lifecycle.schedule }, ...args),
        removeSnapshots: snapshots.removeAll,
        async removeArchives(workspaceId) {
          for (const provider of providers.all) await provider.removeArchives(workspaceId)
        },
        deleteBoxRows: (...args) => deleteAllBoxes({ db, deleteHistory }, ...args),
      }),
    },
    pruners: createPruners({
      db,
      clock,
      operations,
      commands,
      processSnapshots,
      snapshots,
      sessions,
      agentAccounts,
      tickets,
      machines,
      deleteHistory,
      deletedBoxDays: config.deletedBoxDays,
    }),
  })
  const agentUpgrades = createAgentUpgrades({
    tunnels,
    findTarget: createTargetFinder({ bundles: base.agentBundles, managedVersion: providers.agentVersion }),
    loadBox: createAgentLoader(db, upgradedBoxes),
    restartAgent: agentConnections.restartAgent,
    isIdle: (boxId) => !limiter.hasRequests(boxId),
    log,
  })
  return {
    ...base,
    ...finders,
    agentConnections: agentConnections,
    heartbeats,
    reports,
    commands,
    metrics,
    processSnapshots,
    lifecycle,
    schedules: scheduler,
    erasure,
    boxes,
    snapshots,
    snapshotService: createSnapshotService({
      db,
      clock,
      boxes,
      admit,
      schedule: snapshots.schedule,
      limit: config.snapshotLimit,
    }),
    resizes: createResizes({ ...changeOptions, providers }),
    moveBox: createMoveBox({ ...changeOptions, regions: providers }),
    operations,
    account: createAccountService({ db, boxes, edgeUrl: urls.public }),
    mailer,
    keyUses,
    background,
    sessions,
    agentAccounts,
    keys: createKeyService({ db, clock, newApiKey, boxes, openRequests }),
    members: createMemberService({
      db,
      clock,
      openRequests,
      restrictBoxesOf,
      sendMail: config.smtpUrl === null ? null : mailer.send,
      publicUrl: urls.public,
    }),
    workspaces: createWorkspaceService({
      db,
      clock,
      isSignupOpen: config.signup,
      purgeDays: config.purgeDays,
      onSchedule: scheduler.scheduleAt,
    }),
    openRequests,
    tickets,
    machines,
    policies: createPolicyService({ db, clock }),
    audit: createAuditLog({ db, clock, boxes }),
    denials: createDenials({ db, clock, log }),
    auditExport: createAuditExport({
      ...{ db, clock, log },
      allowsPrivate: config.auditSinkPrivate,
      overrides: overrides.auditExport,
    }),
    closeStreams: () => closing.abort(),
    stopSendingEnvironments: environmentSender.close,
    agents: createAgentService({ db, clock, boxes: upgradedBoxes, tunnels, upgrades: agentUpgrades }),
    stopAgentUpgrades: agentUpgrades.close,
    edge: {
      closing: closing.signal,
      limiter,
      pauseGate,
      tunnels,
      transfers: agentConnections.transfers,
      streams: overrides.streams ?? agentConnections.streams,
      sockets: agentConnections.sockets,
      responseParser: createResponseParser(),
      boxes,
      commandTracker: commands.tracker,
      recordConnect: createConnectRecorder({ db, clock }),
      async waitUntilRunning(boxId, ms, signal) {
        await lifecycle.waitUntilRunning(boxId, ms, signal)
      },
    },
  }
}
