// Starts, drains and stops a coordinator. This file defines the order.

import { rm } from 'node:fs/promises'
import type { Logger } from 'pino'
import { type Clock, systemClock } from '../../shared/clock.ts'
import type { CoordinatorRecord, SuspendedBoxes } from '../../shared/coordinator-process.ts'
import { VERSION } from '../../shared/version.ts'
import { type AgentBundles, createAgentBundles } from '../agents/bundles/agent-bundles.ts'
import { openSigningKey } from '../agents/bundles/signing-key.ts'
import { type CleanupStack, createCleanupStack } from '../base/cleanup-stack.ts'
import { type DataDirectory, openDataDirectory, writePrivateFile } from '../base/data-directory.ts'
import { type BoxNames, createLogger } from '../base/log/logger.ts'
import { PROJECT_DIR } from '../base/project-directory.ts'
import { StartError } from '../base/start-error.ts'
import { withTimeout } from '../base/timeout.ts'
import { listLocalBoxRegions, listProviderUses } from '../boxes/lookups.ts'
import { openDiskReserve } from '../db/disk-reserve.ts'
import { openConfiguredDatabase } from '../db/open-configured.ts'
import { ping } from '../db/ping.ts'
import type { Actor } from '../http/actor.ts'
import { createDashboard, type Dashboard } from '../http/dashboard/files.ts'
import type { Health } from '../http/health.ts'
import type { Listening } from '../http/listen.ts'
import { createHttpServer, type HttpServer } from '../http/server.ts'
import { listenWithTls, type TlsListener } from '../http/tls-listener.ts'
import { openDeploymentId } from '../providers/deployment-id.ts'
import { openProviders } from '../providers/open-providers.ts'
import { readIdentity } from '../providers/parts/proc.ts'
import type { Provider } from '../providers/provider.ts'
import { type Providers, serveAllRegions } from '../providers/regions.ts'
import { listenOnBackupSocket } from './backup/backup-socket.ts'
import { removeIncompleteBackups } from './backup/prepare.ts'
import type { Config } from './config.ts'
import { ensureOwnerKey } from './first-start.ts'
import { listenOnPort } from './listen-on-port.ts'
import { openMasterKeys } from './master-keys/open-master-keys.ts'
import { type Context, createModules, type ModuleOverrides, type Urls } from './modules.ts'
import { openAgentSocket } from './open-agent-socket.ts'
import { openReplica } from './replicas/open-replica.ts'
import { assertNotRunning } from './running-coordinator.ts'
import { createStop } from './stop.ts'
import { startTelemetry, type Telemetry } from './telemetry/telemetry.ts'

export type Overrides = ModuleOverrides & {
  log?: Logger
  clock?: Clock
  /** Replaces the configured providers, and serves all regions. */
  provider?: Provider
  /** Replaces the configured providers. */
  providers?: Providers
  /** Called at the begin of each step that may take long, with what the coordinator does then. */
  onStep?(step: string): void
}

export type Coordinator = {
  /** The origin at which it listens. */
  readonly url: string
  /** The origin of the listener for metrics; null: there is none. */
  readonly metricsUrl: string | null
  /** The port of BOXWOOD_TLS_LISTEN; null: there is none. */
  readonly tlsPort: number | null
  readonly dataDirectory: DataDirectory
  readonly context: Context
  /** The actor of the key in the data directory; null: that key is revoked or expired. */
  readonly owner: Actor | null
  /**
   * Rejects new requests and waits up to `ms` for those in flight. Boxes keep running. When other coordinators of the database can
   * take over, leaves its agents to them before, and serves requests until it stops to listen.
   */
  drain(ms: number): Promise<void>
  /** Suspends every box on this machine until the next start. Returns the names of the boxes. */
  suspendBoxes(reason: string): Promise<SuspendedBoxes>
  /** Resolves when the coordinator cannot continue: another one has got its database. */
  readonly failure: Promise<Error>
  /** Stops everything immediately. Boxes keep their state. */
  close(): Promise<void>
}

const RESTORE_INTERVAL_MS = 10_000
const DATABASE_CHECK_MS = 2_000
/** For requests about boxes on other machines, when those on this one have been suspended. */
const SUSPEND_FINISH_MS = 2_000

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
  const { clock = systemClock, onStep = () => undefined } = overrides
  const dataDirectory = await openDataDirectory(config.dataDir)
  await assertNotRunning(dataDirectory, log)
  const diskReserve = openDiskReserve(dataDirectory.reserveFile, {
    onRelease: () =>
      log.error('the disk is full; released the reserved space, and stopped recording commands'),
  })
  const telemetry = await startTelemetry(config, { clock, cleanup, log })
  const failure = Promise.withResolvers<Error>()
  onStep('opening the database')
  const db = await openConfiguredDatabase(config, dataDirectory, {
    diskReserve,
    observer: telemetry.observers.store,
    log,
    onTaken: failure.resolve,
    ...(config.replicaUrl !== null && { shared: {} }),
  }).catch(throwStartError)
  cleanup.add('close the database', () => db.destroy())
  const { host } = dataDirectory
  const listening = await listenOnPort({ config, db, host, log })
  telemetry.addServer(listening.server)
  cleanup.add('close the listening socket', () => listening.server.close())
  const { replica, isFirst } = await openReplica({ config, db, host, log, listenerUrl: listening.url })
  cleanup.add('end the lease of this coordinator', () => replica.close())
  const urls = chooseUrls(config, listening.url)
  onStep('testing the isolation of boxes on this machine, and its engines')
  const providers = await chooseProviders()
  cleanup.add('close the providers', () => providers.close())
  const masterKeys = await openMasterKeys(config)
  const agentBundles = openAgentBundles({ dataDir: dataDirectory.dir, db, masterKeys, log })
  const base = {
    config,
    log,
    boxNames,
    clock,
    db,
    replica,
    diskReserve,
    masterKeys,
    providers,
    urls,
    connections: listening.connections,
    observers: telemetry.observers,
    isOnlyCoordinator: isFirst,
    agentBundles,
  }
  const context = createModules(base, overrides)
  const { modules } = context
  telemetry.addMetrics(modules.collect(({ metrics }) => metrics))
  modules.addTo(cleanup)
  onStep('preparing the agent of the boxes')
  await modules.prepare()
  const { http, health, dashboard } = await startHttpServer(context, { listening, telemetry, cleanup })
  const tls = await openTlsListener(config, { listening, log, cleanup })
  onStep('taking over the boxes')
  await modules.start()
  const owner = await ensureOwnerKey(context, dataDirectory)
  await openBackupSocket()
  const restoreTimer = setInterval(diskReserve.restore, RESTORE_INTERVAL_MS)
  cleanup.add('stop restoring the disk reserve', () => clearInterval(restoreTimer.unref()))
  await writePrivateFile(dataDirectory.signInKeyFile, `${await context.sessions.ownerSecret.read()}\n`)
  cleanup.add('remove sign-in.key', () => rm(dataDirectory.signInKeyFile, { force: true }))
  await writePrivateFile(dataDirectory.coordinatorFile, `${JSON.stringify(createRecord(listening.url))}\n`)
  cleanup.add('remove coordinator.json', () => rm(dataDirectory.coordinatorFile, { force: true }))
  health.phase = 'ready'
  dashboard?.prepare()

  async function chooseProviders(): Promise<Providers> {
    if (overrides.providers) return overrides.providers
    if (overrides.provider) return serveAllRegions(overrides.provider)
    const agentSocket = await openAgentSocket({
      dataDir: dataDirectory.dir,
      server: listening.server,
      isRequired: config.network === 'own',
      cleanup,
      log,
    })
    return openProviders({
      config,
      deploymentId: await openDeploymentId({ db, host, dataDir: dataDirectory.dir }),
      providerUses: await listProviderUses(db, host),
      localBoxes: await listLocalBoxRegions(db, host),
      log,
      projectRoot: PROJECT_DIR,
      coordinatorUrl: urls.agents,
      agentSocketDir: agentSocket.dir,
      agentSocketProblem: agentSocket.problem,
    }).catch(throwStartError)
  }

  async function openBackupSocket(): Promise<void> {
    const { dir: dataDir } = dataDirectory
    const source = { db, host, dataDir, hasMountedKeys: masterKeys.file.isMounted, clock, providers, log }
    await removeIncompleteBackups(source)
    try {
      const socket = await listenOnBackupSocket(source)
      cleanup.add('interrupt backups', () => socket.close())
    } catch (err) {
      log.warn({ err }, 'failed to create the socket for backups; backups require a stopped coordinator')
    }
  }

  const stop = createStop({ health, http, tls, modules, replica, log })
  const coordinator: Coordinator = {
    url: listening.url,
    metricsUrl: telemetry.metricsUrl,
    tlsPort: tls?.port ?? null,
    dataDirectory,
    context,
    owner,
    failure: failure.promise,
    drain: stop.drain,
    async suspendBoxes(reason) {
      await stop.begin()
      await context.scheduler.close()
      // A capture holds the machine of its box.
      await context.snapshots.close()
      const suspended = await context.lifecycle.suspendLocalBoxes(reason)
      await stop.finishRequests(SUSPEND_FINISH_MS)
      return suspended
    },
    close: cleanup.close,
  }
  return coordinator
}

function createRecord(url: string): CoordinatorRecord {
  const identity = readIdentity(process.pid)
  if (identity === null) throw new StartError('This process is not in /proc. Mount /proc.')
  return { url, ...identity, version: VERSION }
}

const chooseUrls = ({ agentUrl, publicUrl }: Config, listener: string): Urls => ({
  agents: agentUrl ?? listener,
  public: publicUrl ?? listener,
  listener,
})

function openAgentBundles({
  dataDir,
  db,
  masterKeys: { keyring },
  log,
}: Pick<Context, 'db' | 'masterKeys' | 'log'> & { dataDir: string }): AgentBundles {
  const openKey = () => openSigningKey({ db, keyring, dataDir })
  return createAgentBundles({ projectRoot: PROJECT_DIR, dataDir, log, openSigningKey: openKey })
}

/** Returns the HTTPS listener; null: there is none. */
async function openTlsListener(
  config: Config,
  { listening, log, cleanup }: { listening: Listening; log: Logger; cleanup: CleanupStack },
): Promise<TlsListener | null> {
  const { tlsListen: address, tlsCert: certFile, tlsKey: keyFile } = config
  if (address === null || certFile === null || keyFile === null) return null
  const listener = await listenWithTls({ address, certFile, keyFile, listening, limits: config.limits, log })
  cleanup.add('close the HTTPS listener', () => listener.close())
  return listener
}

type HttpParts = {
  http: HttpServer
  health: { phase: 'starting' | 'ready' | 'draining' }
  /** null: it is turned off. */
  dashboard: Dashboard | null
}

async function startHttpServer(
  context: Context,
  { listening, telemetry, cleanup }: { listening: Listening; telemetry: Telemetry; cleanup: CleanupStack },
): Promise<HttpParts> {
  const { config, db, log, urls, modules, agentConnections } = context
  const health: HttpParts['health'] = { phase: 'starting' }
  const { dataDir } = config
  const dashboard = config.dashboard ? createDashboard({ projectRoot: PROJECT_DIR, dataDir, log }) : null
  cleanup.add('finish the build of the dashboard', async () => dashboard?.close())
  const http = await createHttpServer({
    listening,
    dashboard,
    log,
    context,
    control: modules.collect(({ routes }) => routes),
    edge: modules.collect(({ edgeRoutes }) => edgeRoutes),
    agents: agentConnections,
    agentRoutes: modules.collect(({ agentRoutes }) => agentRoutes),
    peers: context.peers ?? undefined,
    isServing: () => context.replica.isLeaseValid,
    health: {
      async getUnreadyReason() {
        if (health.phase !== 'ready') return health.phase
        return context.replica.isLeaseValid ? checkDatabase(db) : 'lease'
      },
    },
    publicUrl: urls.public,
    trustedProxies: config.trustedProxies,
    hostHandlers: modules.collect(({ hostHandler }) => (hostHandler ? [hostHandler] : [])),
    publicRoutes: [...telemetry.publicRoutes, ...modules.collect(({ publicRoutes }) => publicRoutes)],
    observer: telemetry.observers.requests,
  })
  cleanup.add('close the HTTP server', () => http.close())
  return { http, health, dashboard }
}

async function checkDatabase(db: Context['db']): ReturnType<Health['getUnreadyReason']> {
  try {
    await withTimeout(ping(db), DATABASE_CHECK_MS, 'the database does not respond')
    return null
  } catch {
    return 'database'
  }
}

/** Converts an error of openConfiguredDatabase or openProviders, whose message is written for the operator. */
function throwStartError(error: Error): never {
  throw new StartError(error.message, { cause: error })
}
