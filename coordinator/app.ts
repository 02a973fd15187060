// A whole coordinator in one process: started, drained and stopped in one order, which stands here.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Logger, pino } from 'pino'
import { type Clock, systemClock } from '../shared/clock.ts'
import { accountRoutes } from './account/routes.ts'
import { boxRoutes } from './boxes/routes.ts'
import { commandRoutes } from './commands/routes.ts'
import type { Config } from './config.ts'
import { type Base, type Context, type ContextOverrides, createContext } from './context.ts'
import { type DataFolder, openDataFolder, writePrivately } from './data-folder.ts'
import { traitsOf } from './db/dialects.ts'
import { openDatabase } from './db/open.ts'
import { edgeRoutes } from './edge/routes.ts'
import { ensureOwner } from './first-start.ts'
import type { Actor } from './http/actor.ts'
import type { Health } from './http/health.ts'
import { releaseUnfinished } from './http/idempotency-store.ts'
import { listen } from './http/listen.ts'
import { createHttpServer, type HttpServer } from './http/server.ts'
import type { Provider } from './lifecycle/provider.ts'
import { createLocalProvider } from './lifecycle/providers/local/provider.ts'
import { operationRoutes } from './operations/routes.ts'
import { StartError } from './start-error.ts'

export type Overrides = ContextOverrides & {
  log?: Logger
  clock?: Clock
  provider?: Provider
}

export type Coordinator = {
  /** Where it listens: an origin. */
  readonly url: string
  readonly folder: DataFolder
  readonly context: Context
  /** Who the key in the data folder acts as; null when it was revoked. */
  readonly owner: Actor | null
  /** Takes no new requests and lets those under way end, for at most this long. Boxes run on. */
  drain(ms: number): Promise<void>
  /** Suspends every box of this machine until the next start; returns their names. */
  suspendBoxes(reason: string): Promise<string[]>
  /** Stops at once what still goes on, and leaves the boxes as they are. */
  close(): Promise<void>
}

const PRUNE_EVERY_MS = 60 * 60 * 1000
const LOOK_AGAIN_MS = 20

/** What was started, to be stopped in the reverse order. */
function createStack() {
  const steps: (() => unknown)[] = []
  let ended: Promise<void> | undefined
  async function unwind(): Promise<void> {
    for (const step of steps.reverse()) await step()
  }
  return {
    add: (step: () => unknown) => void steps.push(step),
    close: () => {
      ended ??= unwind()
      return ended
    },
  }
}

/** Resolves once it answers requests. Throws StartError for what the person who started it can mend. */
export async function startCoordinator(config: Config, overrides: Overrides = {}): Promise<Coordinator> {
  const stack = createStack()
  try {
    return await start(config, overrides, stack)
  } catch (error) {
    await stack.close()
    throw error
  }
}

async function start(config: Config, overrides: Overrides, stack: ReturnType<typeof createStack>) {
  const log = overrides.log ?? pino({ level: config.logLevel }, pino.destination(2))
  const clock = overrides.clock ?? systemClock
  const folder = await openDataFolder(config.dataDir)
  const db = await openDatabase({ kind: 'sqlite', file: folder.database }).catch(asStartError)
  stack.add(() => db.destroy())
  const listening = await listen(config.listen)
  stack.add(() => listening.server.close())
  const urls = {
    agents: config.agentUrl ?? listening.url,
    public: config.publicUrl ?? listening.url,
  }
  const provider = overrides.provider ?? (await localProvider(config, log, urls.agents).catch(asStartError))
  stack.add(() => provider.close())
  const base: Base = { config, log, clock, db, provider, urls }
  const context = createContext(base, overrides)
  stack.add(() => context.commands.close())
  stack.add(() => context.reports.close())
  stack.add(() => context.hub.close())
  stack.add(() => context.heartbeats.close())
  stack.add(() => context.lifecycle.close())

  if (!traitsOf(db).sharedByCoordinators) await releaseUnfinished(db)
  const owner = await ensureOwner(context, folder)
  const { http, health } = await serve(context, listening)
  stack.add(() => http.close())
  await context.lifecycle.start()
  stack.add(pruneNowAndThen(context))
  await writePrivately(folder.coordinator, `${JSON.stringify({ url: listening.url, pid: process.pid })}\n`)
  stack.add(() => rm(folder.coordinator, { force: true }))
  health.phase = 'ready'

  async function drain(ms: number): Promise<void> {
    health.phase = 'draining'
    http.refuseNew()
    context.endStreams()
    const until = performance.now() + ms
    while (http.inFlight() > 0 && performance.now() < until) await sleep(LOOK_AGAIN_MS)
    await context.lifecycle.close()
    await context.hub.drain()
  }

  const coordinator: Coordinator = {
    url: listening.url,
    folder,
    context,
    owner,
    drain,
    suspendBoxes(reason) {
      health.phase = 'draining'
      http.refuseNew()
      context.endStreams()
      return context.lifecycle.suspendAllLocal(reason)
    },
    close: stack.close,
  }
  return coordinator
}

async function serve(
  context: Context,
  listening: Awaited<ReturnType<typeof listen>>,
): Promise<{ http: HttpServer; health: { phase: 'starting' | 'ready' | 'draining' } }> {
  const { db, log, urls, hub } = context
  const health: { phase: 'starting' | 'ready' | 'draining' } = { phase: 'starting' }
  const http = await createHttpServer({
    listening,
    log,
    context,
    control: [
      ...accountRoutes(context),
      ...boxRoutes(context),
      ...commandRoutes({ commands: context.commands.history }),
      ...operationRoutes(context),
    ],
    edge: edgeRoutes(context.edge),
    boxes: hub,
    health: { unready: async () => (health.phase === 'ready' ? databaseDown(db) : health.phase) },
    publicUrl: urls.public,
  })
  return { http, health }
}

async function databaseDown(db: Context['db']): ReturnType<Health['unready']> {
  try {
    await db.selectFrom('workspaces').select('id').limit(1).execute()
    return null
  } catch {
    return 'database'
  }
}

const localProvider = (config: Config, log: Logger, coordinatorUrl: string): Promise<Provider> =>
  createLocalProvider({
    dataDir: config.dataDir,
    log,
    isolation: config.isolation,
    agentSettings: {
      BOXWOOD_LOG_BYTES: String(config.logBytes),
      BOXWOOD_ENDED_LOG_BYTES: String(config.endedLogBytes),
    },
    projectRoot: join(import.meta.dirname, '..'),
    coordinatorUrl,
  })

/** These two throw sentences meant for whoever started the coordinator. */
function asStartError(error: Error): never {
  throw new StartError(error.message, { cause: error })
}

function pruneNowAndThen({ operations, commands, log }: Context): () => void {
  const prune = () => {
    operations.prune().catch((err: unknown) => log.error({ err }, 'old operations could not be removed'))
    commands.prune().catch((err: unknown) => log.error({ err }, 'old commands could not be removed'))
  }
  prune()
  const timer = setInterval(prune, PRUNE_EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}
