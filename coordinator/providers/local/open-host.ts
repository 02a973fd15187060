// Opens the local providers for a coordinator.

import { IS_NPM_PACKAGE } from '../../base/project-directory.ts'
import { formatStartLine } from '../describe-engines.ts'
import type { ProviderConfig, ProviderContext, ProviderHost } from '../provider-host.ts'
import { openLocalHost } from './host.ts'
import { createLocalProvider } from './provider.ts'
import { listOccupiedRegions } from './region-directories.ts'

/** See OpenProviderHost. */
export async function openLocalProviderHost(context: ProviderContext): Promise<ProviderHost> {
  const { config, log, projectRoot, coordinatorUrl, agentSocketDir, agentSocketProblem, agentSettings } =
    context
  const host = await openLocalHost({
    dataDir: config.dataDir,
    log,
    isolation: config.isolation,
    // A configured URL may be an address of this machine's loopback interface.
    network:
      config.network === 'auto' && (config.agentUrl !== null || agentSocketDir === null)
        ? 'host'
        : config.network,
    networkProblem: config.agentUrl === null ? agentSocketProblem : null,
    accepted: {
      level: config.isolation !== 'auto',
      network: config.network === 'host' || config.agentUrl !== null,
      protections: config.protections === 'any',
    },
    ...(config.agentUrl === null && agentSocketDir !== null ? { socketDir: agentSocketDir } : {}),
    agentSettings,
    rootAdvice: adviseRoot(config),
    projectRoot,
    coordinatorUrl,
  })
  return { open: (region) => createLocalProvider(host, region), close: () => host.close() }
}

/** The command that gives a user of a local box root access, or the one with which the operator makes such boxes possible. */
export function adviseRoot({ regions, defaultImage, dataDir }: ProviderConfig): string {
  const create = `run on your own machine: box create --image ${defaultImage}`
  if ([...regions.values()].some(({ kind }) => kind !== 'local'))
    return `For a box with root access, ${create}`
  const startLine = formatStartLine('docker', {
    regions,
    occupiedRegions: listOccupiedRegions(dataDir),
    startCommand: IS_NPM_PACKAGE ? 'boxwood' : 'npm start',
  })
  const line = startLine === null ? '' : `, such as ${startLine}`
  return `The operator of the machine can add boxes with root access (\`box docs images\`)${line}; then ${create}`
}
