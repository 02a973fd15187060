// The list of modules. A feature is a directory with a module, and one line here. Modules are created and started in this order.
import type { Logger } from 'pino'
import type { Clock } from '../shared/clock.ts'
import { credentialsModule } from './account/credentials.ts'
import { accountModule } from './account/module.ts'
import { signUpModule } from './accounts/module.ts'
import { createAdmit } from './admission/admit.ts'
import type { DecideAdmission } from './admission/decide.ts'
import type { AgentBundles } from './agent-bundles/agent-bundles.ts'
import { bundlesModule } from './agent-bundles/module.ts'
import { upgradesModule } from './agent-upgrades/module.ts'
import { auditModule } from './audit/module.ts'
import type { AuditExportOverrides } from './audit-export/audit-export.ts'
import { auditExportModule } from './audit-export/module.ts'
import { createBoxFinder } from './boxes/find-box.ts'
import { findOperationTarget } from './boxes/find-resource.ts'
import { boxesModule } from './boxes/module.ts'
import { restrictBoxesOf } from './boxes/restrict-boxes.ts'
import { commandsModule } from './commands/module.ts'
import type { Config } from './config.ts'
import type { DiskReserve } from './db/disk-reserve.ts'
import type { Db } from './db/open.ts'
import { edgeLimitsModule, edgeModule } from './edge/module.ts'
import { backgroundModule } from './http/background-module.ts'
import { idempotencyModule } from './http/idempotency-module.ts'
import { scheduleRunnerModule, schedulerModule } from './jobs/module.ts'
import { createAgentAuthenticator } from './lifecycle/agents.ts'
import type { LifecycleOptions } from './lifecycle/lifecycle.ts'
import type { MemoryPressure } from './lifecycle/memory-pressure.ts'
import { lifecycleModule } from './lifecycle/module.ts'
import type { Providers } from './lifecycle/providers/regions.ts'
import { reportsModule } from './lifecycle/reports-module.ts'
import { upgradedBoxes } from './lifecycle/upgraded-boxes.ts'
import type { BoxNames } from './log/logger.ts'
import { createMachineAgents } from './machines/agents.ts'
import { machinesModule } from './machines/module.ts'
import { mailModule } from './mail/module.ts'
import { membersModule } from './members/module.ts'
import { metricsModule } from './metrics/module.ts'
import { ModuleChain, ModuleList } from './module-list.ts'
import { operationsModule } from './operations/module.ts'
import { policiesModule } from './policies/module.ts'
import { loadAuditRetentionDays } from './policies/service.ts'
import { portsModule } from './ports/module.ts'
import { processSnapshotsModule } from './process-snapshots/module.ts'
import { retentionModule } from './retention/module.ts'
import { boxSchedulesModule } from './schedules/module.ts'
import { sessionsModule } from './sessions/module.ts'
import { snapshotJobsModule, snapshotsModule } from './snapshots/module.ts'
import type { Observers } from './telemetry/observers.ts'
import { ticketsModule } from './tickets/module.ts'
import type { AgentConnectionsOptions } from './tunnel/agent-connections.ts'
import { tunnelModule } from './tunnel/module.ts'
import type { Streams, Tunnels } from './tunnel/types.ts'
import { workspacesModule } from './workspaces/module.ts'
import { assertOpen } from './workspaces/service.ts'

export type Urls = {
  /** The origin at which agents reach the coordinator. */
  agents: string
  /** The origin at which clients reach the coordinator. */
  public: string
}

export type Base = {
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

export type ModuleOverrides = {
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

/** The services of all modules, and what the coordinator has from the start. */
export type Context = ReturnType<typeof createModules>

/** The modules are in `context.modules`. */
export function createModules(base: Base, overrides: ModuleOverrides = {}) {
  const { db } = base
  const start = {
    ...base,
    overrides,
    modules: new ModuleList(),
    admit: createAdmit(overrides.decideAdmission),
    // Functions of later rooms, which need only the database.
    boxFinder: createBoxFinder(db),
    findOperationTarget,
    assertOpen,
    loadRetentionDays: (workspaceId: string) => loadAuditRetentionDays(db, workspaceId),
    restrictBoxesOf,
    upgradedBoxes,
    authenticateAgent: createAgentAuthenticator(db),
    machineAgents: createMachineAgents(db),
  }
  // The last module runs the schedules of all others.
  return new ModuleChain(start)
    .add(backgroundModule)
    .add(schedulerModule)
    .add(credentialsModule)
    .add(idempotencyModule)
    .add(auditModule)
    .add(auditExportModule)
    .add(operationsModule)
    .add(mailModule)
    .add(workspacesModule)
    .add(membersModule)
    .add(sessionsModule)
    .add(signUpModule)
    .add(ticketsModule)
    .add(policiesModule)
    .add(bundlesModule)
    .add(commandsModule)
    .add(metricsModule)
    .add(processSnapshotsModule)
    .add(reportsModule)
    .add(tunnelModule)
    .add(lifecycleModule)
    .add(snapshotJobsModule)
    .add(boxesModule)
    .add(snapshotsModule)
    .add(accountModule)
    .add(portsModule)
    .add(machinesModule)
    .add(edgeLimitsModule)
    .add(boxSchedulesModule)
    .add(upgradesModule)
    .add(edgeModule)
    .add(retentionModule)
    .add(scheduleRunnerModule).context
}
