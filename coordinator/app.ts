// Starts, drains and stops a coordinator. This file defines the order.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type Clock, systemClock } from '../shared/clock.ts'
import type { CoordinatorRecord, SuspendedBoxes } from '../shared/coordinator-process.ts'
import { keyRoutes } from './account/key-routes.ts'
import { accountRoutes } from './account/routes.ts'
import { agentAccountRoutes } from './accounts/routes.ts'
import { createAgentBundles } from './agent-bundles/agent-bundles.ts'
import { bundleRoutes } from './agent-bundles/routes.ts'
import { agentRoutes } from './agent-upgrades/routes.ts'
import { auditRoutes } from './audit/routes.ts'
import { auditSinkRoutes } from './audit-export/routes.ts'
import { listenOnBackupSocket } from './backup/backup-socket.ts'
import { removeIncompleteBackups } from './backup/prepare.ts'
import { boxRoutes } from './boxes/routes.ts'
import { type CleanupStack, createCleanupStack } from './cleanup-stack.ts'
import { commandRoutes } from './commands/routes.ts'
import type { Config } from './config.ts'
import { type BaseContext, type Context, type ContextOverrides, createContext } from './context.ts'
import { type DataDirectory, openDataDirectory, writePrivateFile } from './data-directory.ts'
import { openDiskReserve } from './db/disk-reserve.ts'
import { openConfiguredDatabase } from './db/open-configured.ts'
import { ping } from './db/ping.ts'
import { edgeRoutes } from './edge/routes.ts'
import { ensureOwnerKey } from './first-start.ts'
import type { Actor } from './http/actor.ts'
import { listenOnAgentSocket } from './http/agent-socket.ts'
import type { Health } from './http/health.ts'
import { releaseUnfinishedKeys } from './http/idempotency-store.ts'
import { listen } from './http/listen.ts'
import { withTag } from './http/route.ts'
import { createHttpServer, type HttpServer } from './http/server.ts'
import { openProviders } from './lifecycle/open-providers.ts'
import type { Provider } from './lifecycle/provider.ts'
import { readIdentity } from './lifecycle/providers/local/proc.ts'
import { type Providers, serveAllRegions } from './lifecycle/providers/regions.ts'
import { type BoxNames, createLogger } from './log/logger.ts'
import { agentEnrollRoutes, machineRoutes } from './machines/routes.ts'
import { memberRoutes } from './members/routes.ts'
import { metricsRoutes } from './metrics/routes.ts'
import { operationRoutes } from './operations/routes.ts'
import { policyRoutes } from './policies/routes.ts'
import { portRoutes } from './ports/routes.ts'
import { processSnapshotRoutes } from './process-snapshots/routes.ts'
import { PROJECT_DIR } from './project-directory.ts'
import { assertNotRunning } from './running-coordinator.ts'
import { sessionRoutes, signInRoutes } from './sessions/routes.ts'
import { boxSnapshotRoutes, snapshotRoutes } from './snapshots/routes.ts'
import { StartError } from './start-error.ts'
import { startTelemetry, type Telemetry } from './telemetry/telemetry.ts'
import { ticketRoutes } from './tickets/routes.ts'
import { withTimeout } from './timeout.ts'
import { COORDINATOR_VERSION } from './version.ts'
import { workspaceRoutes } from './workspaces/routes.ts'

export type Overrides = ContextOverrides & {
  log?: Logger
  clock?: Clock
  /** Serves all regions. */
  provider?: Provider
  /** Instead of the configured providers. */
  providers?: Providers
}

export type Coordinator = {
  /** The origin at which it listens. */
  readonly url: string
  /** The origin of the listener for metrics; null: there is none. */
  readonly metricsUrl: string | null
  readonly dataDirectory: DataDirectory
  readonly context: Context
  /** The actor of the key in the data directory; null: that key is revoked or expired. */
  readonly owner: Actor | null
  /** Rejects new requests and waits up to `ms` for those in flight. Boxes keep running. */
  drain(ms: number): Promise<void>
  /** Suspends every box on this machine until the next start. Returns the names of the boxes. */
  suspendBoxes(reason: string): Promise<SuspendedBoxes>
  /** Resolves when the coordinator cannot continue: another one has got its database. */
  readonly failure: Promise<Error>
  /** Stops everything immediately. Boxes keep their state. */
  close(): Promise<void>
}

const RESTORE_INTERVAL_MS = 10_000
/** More than the lifecycle's own limit. */
const LIFECYCLE_CLOSE_MS = 30_000
/** More than the limit of Snapshots. */
const SNAPSHOTS_CLOSE_MS = 15_000
const DRAIN_POLL_MS = 20
const DATABASE_CHECK_MS = 2_000

/** Resolves when the coordinator is ready for requests. Throws StartError for problems that the operator can fix. */
export async function startCoordinator(config: Config, overrides: Overrides = {}): Promise<Coordinator> {
  const boxNames: BoxNames = new Map()
  const log = overrides.log ?? (await createLogger(config, boxNames))
  const cleanup = createCleanupStack(log)
  try {
    return await start(config, { log, boxNames }, overrides, cleanup)
  } catch (error) {
    await cleanup.close()
    throw error
  }
}

async function start(
  config: Config,
  { log, boxNames }: { log: Logger; boxNames: BoxNames },
  overrides: Overrides,
  cleanup: CleanupStack,
) {
  const clock = overrides.clock ?? systemClock
  const dataDirectory = await openDataDirectory(config.dataDir)
  await assertNotRunning(dataDirectory)
  const diskReserve = openDiskReserve(dataDirectory.reserveFile, {
    onRelease: () =>
      log.error('the disk is full; released the reserved space, and stopped recording commands'),
  })
  const telemetry = await startTelemetry(config, { clock, cleanup, log })
  const failure = Promise.withResolvers<Error>()
  const db = await openConfiguredDatabase(config, dataDirectory, {
    diskReserve,
    observer: telemetry.observers.store,
    log,
    onTaken: failure.resolve,
  }).catch(throwStartError)
  cleanup.add('close the database', () => db.destroy())
  const listening = await listen(config.listen, config)
  telemetry.addServer(listening.server)
  cleanup.add('close the listening socket', () => listening.server.close())
  const urls = {
    agents: config.agentUrl ?? listening.url,
    public: config.publicUrl ?? listening.url,
  }
  const providers = await chooseProviders()
  cleanup.add('close the providers', () => providers.close())
  const { observers } = telemetry
  const agentBundles = createAgentBundles({ projectRoot: PROJECT_DIR, dataDir: dataDirectory.dir, log })
  cleanup.add('finish the build of agent bundles', () => agentBundles.close())
  const base: BaseContext = {
    ...{ config, log, boxNames, clock, db, diskReserve, providers, urls, observers, agentBundles },
  }
  const context = createContext(base, overrides)
  telemetry.addSources(context)
  cleanup.add('finish the background tasks', () => context.background.close())
  cleanup.add('send the last mails', () => context.mailer.close())
  cleanup.add('record the last refused requests', () => context.denials.close())
  cleanup.add('stop delivering audit logs', () => context.auditExport.close())
  cleanup.add('stop pruning commands', () => context.commands.close())
  cleanup.add('stop storing reports', () => context.reports.close())
  cleanup.add('close the response parser', () => context.edge.responseParser.close())
  cleanup.add('stop upgrading agents', context.stopAgentUpgrades)
  cleanup.add('stop sending the variables of boxes', context.stopSendingEnvironments)
  cleanup.add('close the tunnels', () => context.agentConnections.close())
  cleanup.add('write the last use of API keys', () => context.keyUses.close())
  cleanup.add('store the heartbeats', () => context.heartbeats.close())
  cleanup.add('finish lifecycle steps', () => context.lifecycle.close(), LIFECYCLE_CLOSE_MS)
  cleanup.add('interrupt the jobs of snapshots', () => context.snapshots.close(), SNAPSHOTS_CLOSE_MS)
  cleanup.add('stop the schedules', () => context.schedules.close())

  await releaseUnfinishedKeys(db)
  const { http, health } = await startHttpServer(context, listening, telemetry)
  cleanup.add('close the HTTP server', () => http.close())
  await context.lifecycle.start()
  await context.snapshots.start()
  // After the start of the lifecycle, which releases all leases: the first start creates a box.
  const owner = await ensureOwnerKey(context, dataDirectory)
  await context.schedules.start()
  await context.auditExport.start()
  await openBackupSocket()
  const restoreTimer = setInterval(diskReserve.restore, RESTORE_INTERVAL_MS)
  cleanup.add('stop restoring the disk reserve', () => clearInterval(restoreTimer.unref()))
  await writePrivateFile(dataDirectory.signInKeyFile, `${context.sessions.signIn.ownerSecret}\n`)
  cleanup.add('remove sign-in.key', () => rm(dataDirectory.signInKeyFile, { force: true }))
  await writePrivateFile(dataDirectory.coordinatorFile, `${JSON.stringify(createRecord(listening.url))}\n`)
  cleanup.add('remove coordinator.json', () => rm(dataDirectory.coordinatorFile, { force: true }))
  health.phase = 'ready'

  async function chooseProviders(): Promise<Providers> {
    if (overrides.providers) return overrides.providers
    if (overrides.provider) return serveAllRegions(overrides.provider)
    return openProviders({
      config,
      db,
      log,
      projectRoot: PROJECT_DIR,
      coordinatorUrl: urls.agents,
      agentSocketDir: await openAgentSocket(),
    }).catch(throwStartError)
  }

  /** Returns the directory of the socket; null when the boxes cannot use it. */
  async function openAgentSocket(): Promise<string | null> {
    const dir = join(dataDirectory.dir, 'agent-socket')
    try {
      const socket = await listenOnAgentSocket(dir, listening.server)
      cleanup.add('close the socket for agents', () => socket.close())
      return dir
    } catch (err) {
      if (config.network === 'own')
        throw new StartError(
          `The socket for agents in ${dir} cannot be created: ${(err as Error).message}. Set BOXWOOD_DATA to a directory on a local disk, or set BOXWOOD_LOCAL_NETWORK=host.`,
          { cause: err },
        )
      log.warn(
        { err, dir },
        'failed to create the socket for agents; boxes share the network of this machine',
      )
      return null
    }
  }

  async function openBackupSocket(): Promise<void> {
    const source = { db, dataDir: dataDirectory.dir, clock, providers, log }
    await removeIncompleteBackups(source)
    try {
      const socket = await listenOnBackupSocket(source)
      cleanup.add('interrupt backups', () => socket.close())
    } catch (err) {
      log.warn({ err }, 'failed to create the socket for backups; backups require a stopped coordinator')
    }
  }

  async function drain(ms: number): Promise<void> {
    health.phase = 'draining'
    http.rejectNewRequests()
    context.closeStreams()
    context.stopAgentUpgrades()
    const deadline = performance.now() + ms
    while (http.getInFlightCount() > 0 && performance.now() < deadline) await sleep(DRAIN_POLL_MS)
    await context.schedules.close()
    await context.lifecycle.close()
    await context.agentConnections.drain()
  }

  const coordinator: Coordinator = {
    url: listening.url,
    metricsUrl: telemetry.metricsUrl,
    dataDirectory,
    context,
    owner,
    failure: failure.promise,
    drain,
    async suspendBoxes(reason) {
      health.phase = 'draining'
      http.rejectNewRequests()
      context.closeStreams()
      await context.schedules.close()
      // A capture holds the machine of its box.
      await context.snapshots.close()
      return context.lifecycle.suspendLocalBoxes(reason)
    },
    close: cleanup.close,
  }
  return coordinator
}

function createRecord(url: string): CoordinatorRecord {
  const identity = readIdentity(process.pid)
  if (identity === null) throw new StartError('This process is not in /proc. Mount /proc.')
  return { url, ...identity, version: COORDINATOR_VERSION }
}

async function startHttpServer(
  context: Context,
  listening: Awaited<ReturnType<typeof listen>>,
  telemetry: Telemetry,
): Promise<{ http: HttpServer; health: { phase: 'starting' | 'ready' | 'draining' } }> {
  const { db, log, urls, agentConnections } = context
  const health: { phase: 'starting' | 'ready' | 'draining' } = { phase: 'starting' }
  const http = await createHttpServer({
    listening,
    log,
    context,
    control: [
      ...withTag('Sign-in', signInRoutes(context)),
      ...withTag('Sign-in', sessionRoutes(context)),
      ...withTag('Sign-in', agentAccountRoutes(context)),
      ...withTag('Account', accountRoutes(context)),
      ...withTag('API keys', keyRoutes(context)),
      ...withTag('Boxes', boxRoutes(context)),
      ...withTag('Boxes', metricsRoutes({ metrics: context.metrics.service })),
      ...withTag('Boxes', processSnapshotRoutes(context.processSnapshots)),
      ...withTag('Boxes', portRoutes(context)),
      ...withTag('Boxes', ticketRoutes(context)),
      ...withTag(
        'Machines',
        machineRoutes({
          machines: context.machines,
          publicUrl: context.config.publicUrl,
          prepareBundles: context.agentBundles.prepare,
        }),
      ),
      ...withTag('Agents', agentRoutes(context)),
      ...withTag('Command history', commandRoutes({ commands: context.commands.history })),
      ...withTag('Boxes', boxSnapshotRoutes({ snapshots: context.snapshotService })),
      ...withTag('Snapshots', snapshotRoutes({ snapshots: context.snapshotService })),
      ...withTag('Operations', operationRoutes(context)),
      ...withTag('Members', memberRoutes(context)),
      ...withTag('Workspace', workspaceRoutes(context)),
      ...withTag('Workspace', policyRoutes(context)),
      ...withTag('Audit log', auditRoutes(context)),
      ...withTag('Audit log', auditSinkRoutes({ auditSink: context.auditExport.service })),
    ],
    edge: edgeRoutes(context.edge),
    agents: agentConnections,
    agentRoutes: agentEnrollRoutes(context),
    health: { getUnreadyReason: async () => (health.phase === 'ready' ? checkDatabase(db) : health.phase) },
    publicUrl: urls.public,
    trustedProxies: context.config.trustedProxies,
    publicRoutes: [...telemetry.publicRoutes, ...bundleRoutes({ ...context, projectRoot: PROJECT_DIR })],
    observer: telemetry.observers.requests,
  })
  return { http, health }
}

async function checkDatabase(db: Context['db']): ReturnType<Health['getUnreadyReason']> {
  try {
    await withTimeout(ping(db), DATABASE_CHECK_MS, 'the database does not respond')
    return null
  } catch {
    return 'database'
  }
}

/** For errors of openConfiguredDatabase and openProviders, whose messages are written for the operator. */
function throwStartError(error: Error): never {
  throw new StartError(error.message, { cause: error })
}
