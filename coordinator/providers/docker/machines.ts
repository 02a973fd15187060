// The machines of boxes in an engine: a container, two volumes and a network for each.
import type { Isolation } from '../../../shared/api/boxes.ts'
import { boundTier } from '../../../shared/tiers.ts'
import { describeAddress } from '../engine-http/address.ts'
import { type MachineInfo, type MachineSpec, type MachineState, PermanentProviderError } from '../provider.ts'
import type { AgentVolume } from './agent-volume.ts'
import { createSettings, SOCKET_URL, writeStateFiles } from './connection-files.ts'
import { createContainerConfig } from './container-config.ts'
import {
  type Container,
  findContainer,
  isInterruptedStart,
  isMissingNetwork,
  isStaleTask,
  pauseContainer,
  removeContainer,
  removeMachineImage,
  replaceContainer,
  startContainer,
  stopContainer,
  stopInterrupted,
  unpauseContainer,
  updateContainer,
} from './containers.ts'
import type { Engine } from './engine.ts'
import type { EngineInfo } from './engine-info.ts'
import type { EngineImage, EngineImages } from './images/images.ts'
import { createLimits, type Limits, selectLimits } from './limits.ts'
import { getContainerName } from './names.ts'
import type { Networks } from './networks.ts'
import { CREATION_FILE, createVolumes, findCreation, findStartedCreation, removeVolumes } from './volumes.ts'

export type MachinesOptions = {
  engine: Engine
  images: EngineImages
  agentVolume: AgentVolume
  networks: Networks
  readInfo(): Promise<EngineInfo>
  /** See ContainerInput. */
  socketDir: string | null
  agentSettings: Readonly<Record<string, string>>
}

type ContainerOptions = {
  image: EngineImage | null
  creationId: string | undefined
  info: EngineInfo
  name?: string
}

const CREATED_AGAIN =
  'its container had been removed, and was created again from its image: its home is complete, other files are lost'
/** The number of concurrent starts is limited. */
const DOWNLOAD_TIMEOUT_MS = 10 * 60_000

/** Fills the volumes of a machine, and returns the reference of its image. */
export type RestoreMachine = () => Promise<string>

export class EngineMachines {
  readonly #options: MachinesOptions

  constructor(options: MachinesOptions) {
    this.#options = options
  }

  /** See Provider.create(). The calls for a box must run one at a time. */
  async create(spec: MachineSpec, restore?: RestoreMachine, signal?: AbortSignal): Promise<MachineInfo> {
    const { engine, agentVolume, readInfo } = this.#options
    const { boxId } = spec
    const info = await readInfo()
    const isolation = createIsolation(info)
    const existing = await findContainer(engine, boxId)
    if (existing !== null) {
      if (existing.creationId === (await findCreation(engine, boxId))) return { isolation }
      engine.log.warn({ boxId }, 'an earlier call has created a container late, which is removed')
      await removeContainer(engine, boxId)
    }
    const image = restore === undefined ? await this.#ensureImage(spec, signal) : null
    await agentVolume.ensure()
    // Those of an interrupted call may have a part of the files.
    await removeVolumes(engine, boxId)
    const creationId = await createVolumes(engine, boxId)
    const restored = restore && (await this.#findImage(await restore()))
    await this.#createContainer(spec, { image: image ?? restored ?? null, creationId, info })
    engine.log.debug({ boxId }, 'machine created')
    return {
      isolation,
      ...(image !== null && { imageDigest: image.digest ?? image.id }),
    }
  }

  /** See Provider.start(). */
  async start(spec: MachineSpec & { agentToken: string }): Promise<MachineInfo> {
    const { engine, agentVolume, networks, readInfo } = this.#options
    const { boxId, agentToken } = spec
    if (engine.kind === 'podman') await stopInterrupted(engine, boxId)
    const info = await readInfo()
    const existing = await findContainer(engine, boxId)
    const container = existing ?? (await this.#createAgain(spec, info))
    const { creationId } = container
    const files = {
      token: agentToken,
      url: this.#getUrl(spec),
      ...this.#createSettings(spec, info),
      ...(creationId !== undefined && { [CREATION_FILE]: creationId }),
    }
    await writeStateFiles(engine, boxId, files)
    if (container.state === 'frozen') await unpauseContainer(engine, boxId)
    if (container.state === 'stopped') {
      await agentVolume.ensure()
      await networks.ensure(boxId)
      const limits = selectLimits(createLimits(spec.tier, info.capacity), info)
      const isResized = !hasLimits(container, limits)
      // Podman changes a container only while it runs.
      if (isResized && engine.kind === 'docker') await updateContainer(engine, boxId, limits)
      await startContainer(engine, boxId).catch(async (error: unknown) => {
        if (isMissingNetwork(error)) await networks.reconnect(boxId)
        else if (isStaleTask(error)) {
          engine.log.warn(
            { err: error, boxId },
            'the engine cannot start a container, which is created again',
          )
          await this.#replaceContainer(spec, { creationId, info })
        } else if (!isInterruptedStart(error)) throw error
        await startContainer(engine, boxId)
      })
      if (isResized && engine.kind === 'podman') await updateContainer(engine, boxId, limits)
      engine.log.debug({ boxId }, 'machine started')
    }
    return { isolation: createIsolation(info), ...(existing === null && { repair: CREATED_AGAIN }) }
  }

  /** See Provider.resize(). */
  async resize(spec: MachineSpec): Promise<boolean> {
    const { engine, readInfo } = this.#options
    const container = await findContainer(engine, spec.boxId)
    if (container?.state !== 'running') return false
    const info = await readInfo()
    const limits = selectLimits(createLimits(spec.tier, info.capacity), info)
    if (!(await updateContainer(engine, spec.boxId, limits))) return false
    await writeStateFiles(engine, spec.boxId, this.#createSettings(spec, info))
    return true
  }

  /** No-op when stopped. */
  async stop(boxId: string): Promise<void> {
    await stopContainer(this.#options.engine, boxId)
  }

  /** No-op when absent. Returns the id of the image of the container. */
  async destroy(boxId: string): Promise<string | null> {
    const { engine, networks } = this.#options
    const imageId = (await findContainer(engine, boxId))?.imageId ?? null
    await removeContainer(engine, boxId)
    await removeMachineImage(engine, boxId)
    await removeVolumes(engine, boxId)
    await networks.remove(boxId)
    return imageId
  }

  async inspect(boxId: string): Promise<MachineState> {
    const { engine } = this.#options
    let container = await findContainer(engine, boxId)
    if (container?.isStopping) {
      // The agent has got the signal to exit: nothing must wait for it.
      await stopContainer(engine, boxId)
      container = await findContainer(engine, boxId)
    }
    if (container !== null) return container.state
    // The next start creates the container again.
    return (await findStartedCreation(engine, boxId)) === null ? 'absent' : 'stopped'
  }

  /** See Provider.freeze(). */
  async freeze(boxId: string): Promise<boolean> {
    const state = await this.inspect(boxId)
    if (state !== 'running') return state === 'frozen'
    return pauseContainer(this.#options.engine, boxId)
  }

  async #ensureImage({ image }: MachineSpec, signal: AbortSignal | undefined): Promise<EngineImage> {
    const { images } = this.#options
    return images.ensure(image ?? images.defaultImage, signal)
  }

  async #findImage(reference: string): Promise<EngineImage> {
    const image = await this.#options.images.find(reference)
    if (image === null) throw new Error(`The image ${reference} was removed meanwhile.`)
    return image
  }

  /** The container is last: a machine exists when its container exists. */
  async #createContainer(
    { boxId, hostname, tier }: MachineSpec,
    { image, creationId, info, name = getContainerName(boxId) }: ContainerOptions,
  ): Promise<void> {
    const { engine, agentVolume, networks, socketDir } = this.#options
    if (image === null) throw new Error('The machine has no image.')
    await networks.ensure(boxId)
    await engine.http.json({
      method: 'POST',
      path: '/containers/create',
      query: { name },
      json: createContainerConfig({
        kind: engine.kind,
        deploymentId: engine.deploymentId,
        boxId,
        creationId,
        hostname,
        imageId: image.id,
        imageEnvironment: image.environment,
        agentVolume: agentVolume.name,
        socketDir,
        limits: selectLimits(createLimits(tier, info.capacity), info),
      }),
    })
  }

  /** Another program has removed the container, such as `docker container prune`. Its volumes have the home and the state. */
  async #createAgain(spec: MachineSpec, info: EngineInfo): Promise<Container> {
    const { engine, agentVolume } = this.#options
    const { http } = engine
    const { boxId } = spec
    const creationId = await findStartedCreation(engine, boxId)
    if (creationId === null)
      throw new PermanentProviderError(
        `${http.name} at ${describeAddress(http.address)} has no container of the box and no volume with its home: they were removed, or the coordinator uses another engine than before. Restore a snapshot, or delete the box.`,
      )
    engine.log.warn({ boxId }, 'the container of a box was removed, and is created again with its volumes')
    const image = await this.#ensureImage(spec, AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS))
    await agentVolume.ensure()
    await this.#createContainer(spec, { image, creationId, info })
    const container = await findContainer(engine, boxId)
    if (container === null) throw new Error('The container of the box was removed meanwhile.')
    return container
  }

  async #replaceContainer(
    spec: MachineSpec,
    options: Pick<ContainerOptions, 'creationId' | 'info'>,
  ): Promise<void> {
    await replaceContainer(this.#options.engine, spec.boxId, async (name, reference) => {
      await this.#createContainer(spec, { ...options, image: await this.#findImage(reference), name })
    })
  }

  #getUrl({ coordinatorUrl }: MachineSpec): string {
    return this.#options.socketDir === null ? coordinatorUrl : SOCKET_URL
  }

  #createSettings(spec: MachineSpec, { capacity, limits }: EngineInfo) {
    const { cpus, memoryBytes, diskBytes } = boundTier(spec.tier, capacity)
    // Where the engine enforces the limits, the agent reads them from its cgroup.
    const isLimited = limits.includes('cpu') && limits.includes('memory')
    return createSettings({
      ...this.#options.agentSettings,
      BOXWOOD_URL: this.#getUrl(spec),
      // One engine has few boxes, so all agents can reconnect within 2 s of a coordinator restart.
      BOXWOOD_RECONNECT_MAX_MS: '2000',
      BOXWOOD_DISK_BYTES: String(diskBytes),
      BOXWOOD_NETWORK: 'own',
      ...(isLimited
        ? {}
        : {
            BOXWOOD_CPUS: String(cpus),
            BOXWOOD_MEMORY_BYTES: String(memoryBytes),
            BOXWOOD_PRIVATE_PIDS: '1',
          }),
      ...(limits.includes('cpu') && { OMP_NUM_THREADS: String(cpus) }),
    })
  }
}

const hasLimits = ({ limits }: Container, wanted: Partial<Limits>): boolean =>
  limits.NanoCpus === wanted.NanoCpus && limits.Memory === wanted.Memory

const createIsolation = ({ limits }: EngineInfo): Isolation => ({
  level: 'container',
  limits,
  network: 'own',
})
