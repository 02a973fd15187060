// The list of modules. A feature is a directory with a module, and one line here. Modules are created and started in this order.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import { LIMITS } from '../../shared/limits.ts'
import { createAdmit } from '../admission/admit.ts'
import type { LoadBilling } from '../admission/billing-facts.ts'
import type { DecideAdmission } from '../admission/decide.ts'
import { createPlanLimits } from '../admission/plan-limits.ts'
import { balanceModule } from '../agents/balance/module.ts'
import type { AgentBundles } from '../agents/bundles/agent-bundles.ts'
import { bundlesModule } from '../agents/bundles/module.ts'
import type { AgentConnectionsOptions } from '../agents/tunnel/agent-connections.ts'
import { tunnelModule } from '../agents/tunnel/module.ts'
import type { Streams, Transfers, Tunnels } from '../agents/tunnel/types.ts'
import { upgradesModule } from '../agents/upgrades/module.ts'
import type { AuditExportOverrides } from '../audit/export/audit-export.ts'
import { auditExportModule } from '../audit/export/module.ts'
import { auditModule } from '../audit/module.ts'
import type { BoxNames } from '../base/log/logger.ts'
import { createMemoryPressure, type MemoryPressure } from '../base/memory-pressure.ts'
import { type Billing, openBilling } from '../billing/billing.ts'
import { billingModule } from '../billing/module.ts'
import { operatorModule } from '../billing/operator/module.ts'
import { type PaymentsModuleContext, paymentsModule } from '../billing/payments/module.ts'
import { createBoxFinder } from '../boxes/find-box.ts'
import { findOperationTarget } from '../boxes/find-resource.ts'
import { createAgentAuthenticator } from '../boxes/lifecycle/authenticate-agent.ts'
import type { LifecycleOptions } from '../boxes/lifecycle/lifecycle.ts'
import { lifecycleModule } from '../boxes/lifecycle/module.ts'
import { reportsModule } from '../boxes/lifecycle/reports-module.ts'
import { upgradedBoxes } from '../boxes/lifecycle/upgraded-boxes.ts'
import { countLiveBoxes, hasUnrestrictedBoxes } from '../boxes/lookups.ts'
import { boxesModule } from '../boxes/module.ts'
import { createRestrictBoxesOf } from '../boxes/restrict-boxes.ts'
import { boxSchedulesModule } from '../boxes/schedules/module.ts'
import { quietHoursModule } from '../boxes/schedules/quiet-hours/module.ts'
import { snapshotJobsModule, snapshotsModule } from '../boxes/snapshots/module.ts'
import type { DiskReserve } from '../db/disk-reserve.ts'
import type { Db } from '../db/open.ts'
import { deploymentModule } from '../deployment/module.ts'
import { downloadLinksModule } from '../download-links/module.ts'
import { edgeLimitsModule, edgeModule } from '../edge/module.ts'
import { type SecretBrokerOverrides, secretBrokerModule } from '../edge/secret-broker/module.ts'
import { sharedPortsModule } from '../edge/shared-ports/module.ts'
import { viewersModule } from '../edge/shared-ports/viewers/module.ts'
import { environmentDeliveryModule } from '../environments/delivery/module.ts'
import { environmentsModule } from '../environments/module.ts'
import { boxVariableModule } from '../environments/sender-module.ts'
import { awsModule } from '../federation/aws/module.ts'
import { issuerModule } from '../federation/issuer/module.ts'
import { feedModule } from '../feed/module.ts'
import { commandsModule } from '../history/commands/module.ts'
import { metricsModule } from '../history/metrics/module.ts'
import { processSnapshotsModule } from '../history/process-snapshots/module.ts'
import { backgroundModule } from '../http/background-module.ts'
import type { Connections } from '../http/connections.ts'
import { idempotencyModule } from '../http/idempotency-module.ts'
import { accountModule } from '../identity/account/module.ts'
import { confirmActor } from '../identity/confirm-actor.ts'
import { credentialsModule } from '../identity/credentials.ts'
import { mailModule } from '../identity/mail/module.ts'
import { membersModule } from '../identity/members/module.ts'
import { policiesModule } from '../identity/policies/module.ts'
import { loadAuditRetentionDays } from '../identity/policies/service.ts'
import { sessionsModule } from '../identity/sessions/module.ts'
import { signUpModule } from '../identity/sign-up/module.ts'
import { ticketsModule } from '../identity/tickets/module.ts'
import { workspacesModule } from '../identity/workspaces/module.ts'
import { assertOpen } from '../identity/workspaces/service.ts'
import { imageDownloadsModule } from '../images/downloads-module.ts'
import { imagesModule } from '../images/module.ts'
import { scheduleRunnerModule, schedulerModule } from '../jobs/module.ts'
import { operationsModule } from '../jobs/operations/module.ts'
import { createMachineAgents } from '../machines/machine-agents.ts'
import { machinesModule } from '../machines/module.ts'
import { mcpModule } from '../mcp/module.ts'
import { portsModule } from '../port-shares/module.ts'
import { shareViewersModule } from '../port-shares/viewers/module.ts'
import type { Providers } from '../providers/regions.ts'
import type { Replica } from '../replicas/replica.ts'
import { retentionModule } from '../retention/module.ts'
import { authoritiesModule } from '../secrets/authorities-module.ts'
import { secretsModule } from '../secrets/module.ts'
import { teamModule } from '../team/module.ts'
import { warmMachinesModule } from '../warm-machines/module.ts'
import type { Config } from './config.ts'
import { masterKeysModule } from './master-keys/module.ts'
import type { MasterKeys } from './master-keys/open-master-keys.ts'
import { ModuleChain, ModuleList } from './module-list.ts'
import { peersModule } from './replicas/module.ts'
import type { Observers } from './telemetry/observers.ts'

export type Urls = {
  /** The origin at which agents reach the coordinator. */
  agents: string
  /** The origin at which clients reach the coordinator. */
  public: string
  /** The origin at which the coordinator listens. */
  listener: string
}

export type Base = {
  config: Config
  log: Logger
  boxNames: BoxNames
  clock: Clock
  db: Db
  replica: Replica
  diskReserve: DiskReserve
  masterKeys: MasterKeys
  providers: Providers
  urls: Urls
  /** The open connections of clients and agents. */
  connections: Connections
  /** The observers that record metrics and traces. */
  observers: Observers
  /** No other coordinator uses the database: its lock is exclusive. */
  isOnlyCoordinator: boolean
  /** The builds of the agent that machines install. */
  agentBundles: AgentBundles
}

export type ModuleOverrides = {
  decideAdmission?: DecideAdmission
  /** Tests set the facts of billing. */
  loadBilling?: LoadBilling
  memory?: MemoryPressure
  /** Prints a line on stdout. */
  print?: (line: string) => void
  /** Multiplies the limits of sign-ins per client address. Default: 1. */
  addressLimitFactor?: number
  auditExport?: AuditExportOverrides
  /** Tests with in-memory machines pass the tunnels of these machines. */
  tunnels?: Tunnels
  streams?: Streams
  transfers?: Transfers
  /** The servers to which boxes send requests with secrets. */
  secretBroker?: SecretBrokerOverrides
  /** The address of a fake of Stripe. */
  stripeApi?: PaymentsModuleContext['overrides']['stripeApi']
  /** Timeouts of silent agents and idle transfers. */
  agentConnections?: Partial<
    Pick<AgentConnectionsOptions, 'liveness' | 'transferIdleTimeoutMs' | 'acceptedVersions'>
  >
  lifecycle?: Partial<
    Pick<LifecycleOptions, 'connectTimeoutMs' | 'backoff' | 'maxConcurrentMachines' | 'disconnectGraceMs'>
  >
}

/** The services of all modules, and what the coordinator has from the start. */
export type Context = ReturnType<typeof createModules>

/** The modules are in `context.modules`. */
export function createModules(base: Base, overrides: ModuleOverrides = {}) {
  const { db, clock } = base
  const billing: Billing = openBilling(base)
  const { decideAdmission, loadBilling = billing?.finances.loadFacts } = overrides
  const modules = new ModuleList()
  const start = {
    ...base,
    overrides,
    modules,
    billing,
    admit: createAdmit({
      clock,
      countLiveBoxes,
      ...(decideAdmission && { decide: decideAdmission }),
      ...(loadBilling && { loadBilling }),
    }),
    // These functions of later rooms need at most the database, so they exist before the modules.
    boxFinder: createBoxFinder(db),
    findOperationTarget,
    assertOpen,
    confirmActor,
    loadPlanLimits: createPlanLimits(
      {
        snapshots: base.config.snapshotLimit,
        secrets: LIMITS.secrets,
        terminals: base.config.limits.terminals,
      },
      billing?.finances.loadPlanLimits,
    ),
    loadRetentionDays: (workspaceId: string) => loadAuditRetentionDays(db, workspaceId),
    restrictBoxesOf: createRestrictBoxesOf(modules),
    hasUnrestrictedBoxes,
    upgradedBoxes,
    memory: overrides.memory ?? createMemoryPressure(),
    authenticateAgent: createAgentAuthenticator(db),
    machineAgents: createMachineAgents(db),
  }
  // The last module runs the schedules of all others.
  return new ModuleChain(start)
    .add(backgroundModule)
    .add(deploymentModule)
    .add(masterKeysModule)
    .add(peersModule)
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
    .add(authoritiesModule)
    .add(imageDownloadsModule)
    .add(lifecycleModule)
    .add(boxVariableModule)
    .add(secretsModule)
    .add(environmentsModule)
    .add(environmentDeliveryModule)
    .add(snapshotJobsModule)
    .add(portsModule)
    .add(shareViewersModule)
    .add(warmMachinesModule)
    .add(boxesModule)
    .add(snapshotsModule)
    .add(paymentsModule)
    .add(billingModule)
    .add(operatorModule)
    .add(issuerModule)
    .add(awsModule)
    .add(feedModule)
    .add(imagesModule)
    .add(accountModule)
    .add(machinesModule)
    .add(edgeLimitsModule)
    .add(teamModule)
    .add(boxSchedulesModule)
    .add(quietHoursModule)
    .add(upgradesModule)
    .add(balanceModule)
    .add(downloadLinksModule)
    .add(edgeModule)
    .add(secretBrokerModule)
    .add(viewersModule)
    .add(sharedPortsModule)
    .add(mcpModule)
    .add(retentionModule)
    .add(scheduleRunnerModule).context
}
