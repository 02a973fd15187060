// Starts, drains and stops a coordinator. This file defines the order.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type Clock, systemClock } from '../shared/clock.ts'
import type { CoordinatorRecord, SuspendedBoxes } from '../shared/coordinator-process.ts'
import { accountRoutes } from './account/routes.ts'
import { pruneBoxes } from './boxes/prune.ts'
import { boxRoutes } from './boxes/routes.ts'
import { type CleanupStack, createCleanupStack } from './cleanup-stack.ts'
import { commandRoutes } from './commands/routes.ts'
import type { Config } from './config.ts'
import { type BaseContext, type Context, type ContextOverrides, createContext } from './context.ts'
import { type DataDirectory, openDataDirectory, writePrivateFile } from './data-directory.ts'
import { dialectTraits } from './db/dialects.ts'
import { openDiskReserve } from './db/disk-reserve.ts'
import { openDatabase } from './db/open.ts'
import { edgeRoutes } from './edge/routes.ts'
import { ensureOwnerKey } from './first-start.ts'
import type { Actor } from './http/actor.ts'
import { listenOnAgentSocket } from './http/agent-socket.ts'
import type { Health } from './http/health.ts'
import { releaseUnfinishedKeys } from './http/idempotency-store.ts'
import { listen } from './http/listen.ts'
import { withTag } from './http/route.ts'
import { createHttpServer, type HttpServer } from './http/server.ts'
import type { Provider } from './lifecycle/provider.ts'
import { readIdentity } from './lifecycle/providers/local/proc.ts'
import { createLocalProvider } from './lifecycle/providers/local/provider.ts'
import { type BoxNames, createLogger } from './log/logger.ts'
import { operationRoutes } from './operations/routes.ts'
import { assertNotRunning } from './running-coordinator.ts'
import { StartError } from './start-error.ts'
import { COORDINATOR_VERSION } from './version.ts'

export type Overrides = ContextOverrides & {
  log?: Logger
  clock?: Clock
  provider?: Provider
}

export type Coordinator = {
  /** The origin at which it listens. */
  readonly url: string
  readonly dataDirectory: DataDirectory
  readonly context: Context
  /** The actor of the key in the data directory; null: that key is revoked or expired. */
  readonly owner: Actor | null
  /** Rejects new requests and waits up to `ms` for those in flight. Boxes keep running. */
  drain(ms: number): Promise<void>
  /** Suspends every box on this machine until the next start. Returns the names of the boxes. */
  suspendBoxes(reason: string): Promise<SuspendedBoxes>
  /** Stops everything immediately. Boxes keep their state. */
  close(): Promise<void>
}

const PRUNE_INTERVAL_MS = 60 * 60 * 1000
const RESTORE_INTERVAL_MS = 10_000
/** More than the lifecycle's own limit. */
const LIFECYCLE_CLOSE_MS = 30_000
const DRAIN_POLL_MS = 20

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
  const db = await openDatabase({
    kind: 'sqlite',
    file: dataDirectory.databaseFile,
    diskReserve,
  }).catch(throwStartError)
  cleanup.add('close the database', () => db.destroy())
  const listening = await listen(config.listen, config)
  cleanup.add('close the listening socket', () => listening.server.close())
  const agentSocketDir = overrides.provider ? null : await openAgentSocket()
  const urls = {
    agents: config.agentUrl ?? listening.url,
    public: config.publicUrl ?? listening.url,
  }
  const provider =
    overrides.provider ??
    (await openLocalProvider(config, log, urls.agents, agentSocketDir).catch(throwStartError))
  cleanup.add('close the provider', () => provider.close())
  const base: BaseContext = { config, log, boxNames, clock, db, diskReserve, provider, urls }
  const context = createContext(base, overrides)
  cleanup.add('stop pruning commands', () => context.commands.close())
  cleanup.add('stop storing reports', () => context.reports.close())
  cleanup.add('close the response parser', () => context.edge.responseParser.close())
  cleanup.add('stop upgrading agents', context.stopAgentUpgrades)
  cleanup.add('close the tunnels', () => context.agentConnections.close())
  cleanup.add('store the heartbeats', () => context.heartbeats.close())
  cleanup.add('finish lifecycle steps', () => context.lifecycle.close(), LIFECYCLE_CLOSE_MS)

  if (!dialectTraits(db).sharedByCoordinators) await releaseUnfinishedKeys(db)
  const owner = await ensureOwnerKey(context, dataDirectory)
  const { http, health } = await startHttpServer(context, listening)
  cleanup.add('close the HTTP server', () => http.close())
  await context.lifecycle.start()
  cleanup.add('stop pruning', schedulePruning(context))
  const restoreTimer = setInterval(diskReserve.restore, RESTORE_INTERVAL_MS)
  cleanup.add('stop restoring the disk reserve', () => clearInterval(restoreTimer.unref()))
  await writePrivateFile(dataDirectory.coordinatorFile, `${JSON.stringify(createRecord(listening.url))}\n`)
  cleanup.add('remove coordinator.json', () => rm(dataDirectory.coordinatorFile, { force: true }))
  health.phase = 'ready'

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

  async function drain(ms: number): Promise<void> {
    health.phase = 'draining'
    http.rejectNewRequests()
    context.closeStreams()
    context.stopAgentUpgrades()
    const deadline = performance.now() + ms
    while (http.getInFlightCount() > 0 && performance.now() < deadline) await sleep(DRAIN_POLL_MS)
    await context.lifecycle.close()
    await context.agentConnections.drain()
  }

  const coordinator: Coordinator = {
    url: listening.url,
    dataDirectory,
    context,
    owner,
    drain,
    suspendBoxes(reason) {
      health.phase = 'draining'
      http.rejectNewRequests()
      context.closeStreams()
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
): Promise<{ http: HttpServer; health: { phase: 'starting' | 'ready' | 'draining' } }> {
  const { db, log, urls, agentConnections } = context
  const health: { phase: 'starting' | 'ready' | 'draining' } = { phase: 'starting' }
  const http = await createHttpServer({
    listening,
    log,
    context,
    control: [
      ...withTag('Account', accountRoutes(context)),
      ...withTag('Boxes', boxRoutes(context)),
      ...withTag('Command history', commandRoutes({ commands: context.commands.history })),
      ...withTag('Operations', operationRoutes(context)),
    ],
    edge: edgeRoutes(context.edge),
    agents: agentConnections,
    health: { getUnreadyReason: async () => (health.phase === 'ready' ? checkDatabase(db) : health.phase) },
    publicUrl: urls.public,
  })
  return { http, health }
}

async function checkDatabase(db: Context['db']): ReturnType<Health['getUnreadyReason']> {
  try {
    await db.selectFrom('workspaces').select('id').limit(1).execute()
    return null
  } catch {
    return 'database'
  }
}

/** @param agentSocketDir null: boxes must share the network of this machine. */
const openLocalProvider = (
  config: Config,
  log: Logger,
  coordinatorUrl: string,
  agentSocketDir: string | null,
): Promise<Provider> =>
  createLocalProvider({
    dataDir: config.dataDir,
    log,
    isolation: config.isolation,
    // A configured URL may be an address of this machine's loopback interface.
    network:
      config.network === 'auto' && (config.agentUrl !== null || agentSocketDir === null)
        ? 'host'
        : config.network,
    ...(config.agentUrl === null && agentSocketDir !== null ? { socketDir: agentSocketDir } : {}),
    agentSettings: {
      BOXWOOD_LOG_BYTES: String(config.logBytes),
      BOXWOOD_EXITED_LOG_BYTES: String(config.exitedLogBytes),
    },
    projectRoot: join(import.meta.dirname, '..'),
    coordinatorUrl,
  })

/** For errors of openDatabase and createLocalProvider, whose messages are written for the operator. */
function throwStartError(error: Error): never {
  throw new StartError(error.message, { cause: error })
}

function schedulePruning({ db, clock, config, operations, commands, log }: Context): () => void {
  const stopping = new AbortController()
  const prune = () => {
    pruneBoxes({ db, clock, retentionDays: config.deletedBoxDays }, stopping.signal).catch((err: unknown) =>
      log.error({ err }, 'failed to remove deleted boxes; will retry'),
    )
    operations
      .prune()
      .catch((err: unknown) => log.error({ err }, 'failed to delete expired operations; will retry'))
    commands
      .prune()
      .catch((err: unknown) => log.error({ err }, 'failed to delete expired commands; will retry'))
  }
  prune()
  const timer = setInterval(prune, PRUNE_INTERVAL_MS)
  timer.unref()
  return () => {
    stopping.abort()
    clearInterval(timer)
  }
}
