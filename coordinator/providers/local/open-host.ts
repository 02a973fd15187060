// Opens the local providers for a coordinator.
import type { ProviderContext, ProviderHost } from '../provider-host.ts'
import { openLocalHost } from './host.ts'
import { createLocalProvider } from './provider.ts'

/** See OpenProviderHost. */
export async function openLocalProviderHost(context: ProviderContext): Promise<ProviderHost> {
  const { config, log, projectRoot, coordinatorUrl, agentSocketDir, agentSettings } = context
  const host = await openLocalHost({
    dataDir: config.dataDir,
    log,
    isolation: config.isolation,
    // A configured URL may be an address of this machine's loopback interface.
    network:
      config.network === 'auto' && (config.agentUrl !== null || agentSocketDir === null)
        ? 'host'
        : config.network,
    ...(config.agentUrl === null && agentSocketDir !== null ? { socketDir: agentSocketDir } : {}),
    agentSettings,
    projectRoot,
    coordinatorUrl,
  })
  return { open: (region) => createLocalProvider(host, region), close: () => host.close() }
}
