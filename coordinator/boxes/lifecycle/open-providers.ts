// Opens the providers of the configured regions, for a coordinator and for `box down` without one.
import type { Logger } from 'pino'
import { REGIONS, type Region } from '../../../shared/tiers.ts'
import type { Config } from '../../base/config.ts'
import type { Db } from '../../db/open.ts'
import { createArchiver } from '../../providers/local/archiver.ts'
import { openLocalHost } from '../../providers/local/host.ts'
import { createMachineStoppers, type MachineStoppers } from '../../providers/local/machines.ts'
import { createLocalProvider } from '../../providers/local/provider.ts'
import { listUsedRegions } from '../../providers/local/region-directories.ts'
import { relocateBoxes } from '../../providers/local/relocate-boxes.ts'
import { createProviders, type Providers } from '../../providers/regions.ts'
import { listLiveBoxRegions } from '../store/box-lists.ts'

export type OpenProvidersOptions = {
  config: Pick<
    Config,
    | 'dataDir'
    | 'regions'
    | 'isolation'
    | 'network'
    | 'agentUrl'
    | 'agentLogLevel'
    | 'logBytes'
    | 'exitedLogBytes'
    | 'idleCpuPercent'
    | 'promptRuns'
    | 'promptConversations'
    | 'promptQueue'
    | 'promptMinutes'
  >
  db: Db
  log: Pick<Logger, 'debug' | 'info' | 'warn'>
  projectRoot: string
  coordinatorUrl: string
  /** null: boxes must share the network of this machine. */
  agentSocketDir: string | null
}

/** Throws PermanentProviderError when the configured level or network does not work on this machine. */
export async function openProviders(options: OpenProvidersOptions): Promise<Providers> {
  const { config, db, log, projectRoot, coordinatorUrl, agentSocketDir } = options
  const { dataDir, regions } = config
  await relocateBoxes(await listLiveBoxRegions(db), { dataDir, log })
  // The boxes of a region that was removed from the configuration continue to work.
  const localRegions = new Set<Region>([...regions.keys(), ...listUsedRegions(dataDir)])
  const host = await openLocalHost({
    dataDir,
    log,
    isolation: config.isolation,
    // A configured URL may be an address of this machine's loopback interface.
    network:
      config.network === 'auto' && (config.agentUrl !== null || agentSocketDir === null)
        ? 'host'
        : config.network,
    ...(config.agentUrl === null && agentSocketDir !== null ? { socketDir: agentSocketDir } : {}),
    agentSettings: {
      BOXWOOD_LOG: config.agentLogLevel,
      BOXWOOD_IDLE_CPU_PERCENT: String(config.idleCpuPercent),
      BOXWOOD_LOG_BYTES: String(config.logBytes),
      BOXWOOD_EXITED_LOG_BYTES: String(config.exitedLogBytes),
      BOXWOOD_PROMPT_RUNS: String(config.promptRuns),
      BOXWOOD_PROMPT_CONVERSATIONS: String(config.promptConversations),
      BOXWOOD_PROMPT_QUEUE: String(config.promptQueue),
      BOXWOOD_PROMPT_MINUTES: String(config.promptMinutes),
    },
    projectRoot,
    coordinatorUrl,
  })
  const byRegion = new Map(
    await Promise.all(
      REGIONS.filter((region) => localRegions.has(region)).map(
        async (region) => [region, await createLocalProvider(host, region)] as const,
      ),
    ),
  )
  const providers = createProviders(byRegion, [...regions.keys()])
  return {
    ...providers,
    async close() {
      await Promise.all([providers.close(), host.close()])
    },
  }
}

/** Opens the stoppers of machines for use without a coordinator: for all regions, whatever the configuration. */
export async function openMachineStoppers(
  db: Db,
  options: Pick<OpenProvidersOptions, 'log'> & { dataDir: string },
): Promise<MachineStoppers> {
  await relocateBoxes(await listLiveBoxRegions(db), options)
  return createMachineStoppers(options)
}

/** Opens the archivers of stopped boxes for use without a coordinator: for all regions, whatever the configuration. */
export async function openArchivers({
  dataDir,
  log,
}: Pick<OpenProvidersOptions, 'log'> & { dataDir: string }) {
  const archivers = new Map(
    await Promise.all(
      REGIONS.map(async (region) => [region, await createArchiver({ dataDir, log, region })] as const),
    ),
  )
  return {
    all: [...archivers.values()],
    inRegion(region: Region) {
      const archiver = archivers.get(region)
      if (archiver === undefined) throw new Error(`There is no region ${region}.`)
      return archiver
    },
    async close() {
      await Promise.all([...archivers.values()].map((archiver) => archiver.close()))
    },
  }
}
