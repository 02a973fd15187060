// The Incus server or cluster of the incus regions.

import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { readAgentFiles } from '../container/agent-files.ts'
import type { EngineAddress } from '../engine-http/address.ts'
import { PermanentProviderError } from '../provider.ts'
import type { OpenProviderHost } from '../provider-host.ts'
import type { ProviderSettings } from '../settings.ts'
import { listIncusServers } from './find-server.ts'
import { IncusHost } from './incus-host.ts'
import { createIncusProvider } from './provider.ts'

export const openIncusHost: OpenProviderHost = async (context) => {
  const { config, log, projectRoot, deploymentId, coordinatorUrl, agentSettings } = context
  const address = await chooseAddress(config)
  // The socket of the coordinator is on this machine, as is the server.
  const agentSocketDir = address.kind === 'unix' && config.agentUrl === null ? context.agentSocketDir : null
  if (address.kind === 'tcp' && config.agentUrl === null)
    throw new PermanentProviderError(
      'Boxes of an Incus server on another machine need a URL of the coordinator: set BOXWOOD_AGENT_URL.',
    )
  const host = new IncusHost({
    address,
    deploymentId,
    agentFiles: await readAgentFiles({ projectRoot, dataDir: config.dataDir }),
    agentSettings,
    agentSocketDir,
    coordinatorUrl,
    defaultImage: config.defaultImage,
    pool: config.incusPool,
    log,
  })
  return {
    async open(region, target) {
      const provider = createIncusProvider(host, region, target)
      // The connection is opened again until the server answers.
      host.client.connect().catch((err: unknown) => log.warn({ err, region }, 'Incus does not answer'))
      return provider
    },
    close: () => host.close(),
  }
}

async function chooseAddress(config: ProviderSettings): Promise<EngineAddress> {
  const candidates = listIncusServers(config.incus, process.env)
  const { address } = candidates.find((candidate) => existsSync(candidate.address)) ?? candidates[0] ?? {}
  if (address === undefined)
    throw new PermanentProviderError('No Incus server is configured. Set BOXWOOD_INCUS.')
  if (!address.startsWith('https:')) return { kind: 'unix', path: address }
  const read = async (path: string | null) => (path === null ? undefined : await readFile(path, 'utf8'))
  const [cert, key, pinnedCertificate] = await Promise.all(
    [config.incusCert, config.incusKey, config.incusServerCert].map(read),
  )
  return {
    kind: 'tcp',
    url: address,
    tls: {
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
      ...(pinnedCertificate !== undefined && { pinnedCertificate }),
    },
  }
}
