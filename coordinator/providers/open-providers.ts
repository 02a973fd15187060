// Opens the providers of the configured regions, for a coordinator and for `box down` without one.

import { REGIONS, type Region } from '../../shared/tiers.ts'
import { checkProviders, type ProviderUse } from './check-providers.ts'
import { createArchiver } from './local/archiver.ts'
import { createMachineStoppers, type MachineStoppers } from './local/machines.ts'
import { openLocalProviderHost } from './local/open-host.ts'
import { listUsedRegions } from './local/region-directories.ts'
import { relocateBoxes } from './local/relocate-boxes.ts'
import type { OpenProviderHost, ProviderConfig, ProviderContext, ProviderHost } from './provider-host.ts'
import { createProviders, type Providers } from './regions.ts'
import type { ProviderKind, RegionProvider } from './settings.ts'

/** A local box that is not deleted. */
export type LocalBoxRegion = { id: string; region: Region }

export type OpenProvidersOptions = Omit<ProviderContext, 'agentSettings'> & {
  providerUses: readonly ProviderUse[]
  localBoxes: readonly LocalBoxRegion[]
}

/** Opened when a region needs it: a coordinator without engines does not load their modules. */
const OPENERS: Readonly<Record<ProviderKind, () => Promise<OpenProviderHost>>> = {
  local: async () => openLocalProviderHost,
  docker: async () => (await import('./docker/host.ts')).openEngineHost('docker'),
  podman: async () => (await import('./docker/host.ts')).openEngineHost('podman'),
  incus: async () => (await import('./incus/host.ts')).openIncusHost,
}

const LOCAL: RegionProvider = { kind: 'local', target: null }

/**
 * Throws PermanentProviderError when a configured provider cannot work on this machine, and StartError when a region has boxes of
 * another one.
 */
export async function openProviders({
  providerUses,
  localBoxes,
  ...options
}: OpenProvidersOptions): Promise<Providers> {
  const { config, log } = options
  const { dataDir, regions } = config
  checkProviders(providerUses, regions)
  await relocateBoxes(localBoxes, { dataDir, log })
  // The boxes of a region that was removed from the configuration continue to work.
  const used = new Map<Region, RegionProvider>([
    ...listUsedRegions(dataDir).map((region) => [region, LOCAL] as const),
    ...regions,
  ])
  const context: ProviderContext = { ...options, agentSettings: createAgentSettings(config) }
  const hosts = new Map<ProviderKind, ProviderHost>()
  for (const kind of new Set([...used.values()].map(({ kind }) => kind)))
    hosts.set(kind, await (await OPENERS[kind]())(context))
  const open = async (region: Region, { kind, target }: RegionProvider) => {
    const host = hosts.get(kind)
    if (host === undefined) throw new Error(`The provider ${kind} is not open.`)
    return [region, await host.open(region, target)] as const
  }
  const entries = REGIONS.flatMap((region) => {
    const provider = used.get(region)
    return provider === undefined ? [] : [open(region, provider)]
  })
  const providers = createProviders(new Map(await Promise.all(entries)), [...regions.keys()])
  return {
    ...providers,
    async close() {
      await providers.close()
      await Promise.all([...hosts.values()].map((host) => host.close()))
    },
  }
}

const createAgentSettings = ({ agentLogLevel, limits }: ProviderConfig): Record<string, string> => ({
  BOXWOOD_LOG: agentLogLevel,
  BOXWOOD_IDLE_CPU_PERCENT: String(limits.idleCpuPercent),
  BOXWOOD_LOG_BYTES: String(limits.logBytes),
  BOXWOOD_EXITED_LOG_BYTES: String(limits.exitedLogBytes),
  BOXWOOD_PROMPT_RUNS: String(limits.promptRuns),
  BOXWOOD_PROMPT_CONVERSATIONS: String(limits.promptConversations),
  BOXWOOD_PROMPT_QUEUE: String(limits.promptQueue),
  BOXWOOD_PROMPT_MINUTES: String(limits.promptMinutes),
})

/** Opens the stoppers of machines for use without a coordinator: for all regions, whatever the configuration. */
export async function openMachineStoppers(
  localBoxes: readonly LocalBoxRegion[],
  options: Pick<OpenProvidersOptions, 'log'> & { dataDir: string },
): Promise<MachineStoppers> {
  await relocateBoxes(localBoxes, options)
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
