// Opens the provider of the docker and podman regions, which both have the Docker Engine API.
import { join } from 'node:path'
import { readAgentFiles } from '../container/agent-files.ts'
import { createArchives } from '../parts/archives/archives.ts'
import { BoxQueue } from '../parts/box-queue.ts'
import { PermanentProviderError } from '../provider.ts'
import type { OpenProviderHost, ProviderContext } from '../provider-host.ts'
import { AgentVolume } from './agent-volume.ts'
import { ArchiveImages } from './archives/archive-images.ts'
import { EngineArchives } from './archives/archives.ts'
import { MachinePauses } from './archives/machine-pause.ts'
import { connectToEngine, type EngineConnection } from './connect.ts'
import type { Engine, EngineKind } from './engine.ts'
import { EngineProtections } from './engine-protections.ts'
import { EngineState } from './engine-state.ts'
import { createEngineImages, type EngineImages } from './images/images.ts'
import { removeLeftovers } from './leftovers.ts'
import { EngineMachines } from './machines.ts'
import { Networks } from './networks.ts'
import { createEngineProvider } from './provider.ts'

export const openEngineHost =
  (kind: EngineKind): OpenProviderHost =>
  async (context) => {
    const { config, log, projectRoot, deploymentId, agentSettings } = context
    const { dataDir, defaultImage, dockerSubnets } = config
    const protections = new EngineProtections({
      file: join(dataDir, kind, 'protections.json'),
      isAccepted: config.protections === 'any',
    })
    const connection = connectToEngine(kind, { ...config, previous: protections.address }, log)
    const { http, isLocal } = connection
    const socketDir = chooseSocketDir(connection, context)
    const files = await readAgentFiles({ projectRoot, dataDir })
    const engine: Engine = { kind, http, deploymentId, log }
    const state = new EngineState(engine, isLocal, protections)
    const agentVolume = new AgentVolume(engine, files)
    const images = createEngineImages(engine, { defaultImage })
    const machines = new EngineMachines({
      engine,
      images,
      agentVolume,
      networks: new Networks(engine, dockerSubnets),
      readInfo: () => state.read(),
      socketDir,
      agentSettings,
    })
    const pauses = new MachinePauses(engine, join(dataDir, kind, 'pauses'))
    const store = createArchives({ dir: join(dataDir, kind, 'archives'), log })
    const queue = new BoxQueue()
    const archives = new EngineArchives({
      engine,
      store,
      images: new ArchiveImages(engine, images),
      pauses,
      runExclusive: (boxId, work) => queue.run(boxId, work),
    })
    await prepareEngine({ engine, state, images, agentVolume, pauses, archives })
    const { buildId } = files
    const provider = createEngineProvider({
      engine,
      state,
      images,
      machines,
      store,
      archives,
      pauses,
      queue,
      buildId,
    })
    // All regions have the same machines: a provider for each would remove the machine of a box that has moved.
    return { open: async () => provider, close: () => http.close() }
  }

type Parts = {
  engine: Engine
  state: EngineState
  images: EngineImages
  agentVolume: AgentVolume
  pauses: MachinePauses
  archives: EngineArchives
}

/** The agents of running boxes restart with the current build, so the engine must have it before they connect. */
async function prepareEngine({ engine, state, images, agentVolume, pauses, archives }: Parts): Promise<void> {
  try {
    await state.refresh()
    await pauses.continueAll()
    await removeLeftovers(engine, archives)
    await images.removeUnused()
    await agentVolume.ensure()
  } catch (err) {
    engine.log.warn({ err }, 'the engine is not available; its boxes start when it answers')
  }
}

/** A configured URL may have another network between the boxes and the coordinator, such as one with a proxy. */
function chooseSocketDir(
  { http, isLocal }: EngineConnection,
  { config, agentSocketDir }: ProviderContext,
): string | null {
  if (config.agentUrl !== null) return null
  if (isLocal && agentSocketDir !== null) return agentSocketDir
  throw new PermanentProviderError(
    `Boxes of ${http.name} cannot connect to this coordinator. Set BOXWOOD_AGENT_URL to a URL of the coordinator that the machine of ${http.name} can reach.`,
  )
}
