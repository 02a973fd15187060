// The machines of boxes in an engine: a container, two volumes and a network for each.
import type { Isolation } from '../../../shared/api/boxes.ts'
import { boundTier } from '../../../shared/tiers.ts'
import { ignoreStatus } from '../engine-http/errors.ts'
import { type MachineInfo, type MachineSpec, type MachineState, PermanentProviderError } from '../provider.ts'
import type { AgentVolume } from './agent-volume.ts'
import { createSettings, SOCKET_URL, writeStateFiles } from './connection-files.ts'
import { createContainerConfig } from './container-config.ts'
import {
  type Container,
  findContainer,
  finishStop,
  isStaleTask,
  pauseContainer,
  removeContainer,
  removeMachineImage,
  replaceContainer,
  startContainer,
  stopContainer,
  unpauseContainer,
  updateContainer,
} from './containers.ts'
import type { Engine } from './engine.ts'
import type { EngineInfo } from './engine-info.ts'
import type { EngineImage, EngineImages } from './images/images.ts'
import { createLimits, type Limits, selectLimits } from './limits.ts'
import { createLabels, getContainerName, getHomeVolume, getStateVolume, LABELS } from './names.ts'
import type { Networks } from './networks.ts'

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
    if ((await findContainer(engine, boxId)) !== null) return { isolation }
    const image = restore === undefined ? await this.#ensureImage(spec, signal) : null
    await agentVolume.ensure()
    // Those of an interrupted call may have a part of the files.
    await this.#removeVolumes(boxId)
    await this.#createVolumes(boxId)
    const restored = restore && (await this.#findImage(await restore()))
    await this.#createContainer(spec, image ?? restored ?? null, info)
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
    if (engine.kind === 'podman') await finishStop(engine, boxId)
    const container = await findContainer(engine, boxId)
    if (container === null)
      throw new PermanentProviderError('The machine of the box does not exist. Delete the box.')
    const info = await readInfo()
    const files = { token: agentToken, url: this.#getUrl(spec), ...this.#createSettings(spec, info) }
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
        if (!isStaleTask(error)) throw error
        engine.log.warn({ err: error, boxId }, 'the engine cannot start a container, which is created again')
        await this.#replaceContainer(spec, info)
        await startContainer(engine, boxId)
      })
      if (isResized && engine.kind === 'podman') await updateContainer(engine, boxId, limits)
      engine.log.debug({ boxId }, 'machine started')
    }
    return { isolation: createIsolation(info) }
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

  /** No-op when absent. */
  async destroy(boxId: string): Promise<void> {
    const { engine, networks } = this.#options
    await removeContainer(engine, boxId)
    await removeMachineImage(engine, boxId)
    await this.#removeVolumes(boxId)
    await networks.remove(boxId)
  }

  async inspect(boxId: string): Promise<MachineState> {
    return (await findContainer(this.#options.engine, boxId))?.state ?? 'absent'
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
    image: EngineImage | null,
    info: EngineInfo,
    name = getContainerName(boxId),
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
        hostname,
        imageId: image.id,
        imageEnvironment: image.environment,
        agentVolume: agentVolume.name,
        socketDir,
        limits: selectLimits(createLimits(tier, info.capacity), info),
      }),
    })
  }

  async #replaceContainer(spec: MachineSpec, info: EngineInfo): Promise<void> {
    await replaceContainer(this.#options.engine, spec.boxId, async (name, reference) => {
      await this.#createContainer(spec, await this.#findImage(reference), info, name)
    })
  }

  async #createVolumes(boxId: string): Promise<void> {
    const { http, deploymentId } = this.#options.engine
    for (const name of [getStateVolume(boxId), getHomeVolume(boxId)])
      await http.json({
        method: 'POST',
        path: '/volumes/create',
        json: { Name: name, Labels: createLabels(deploymentId, 'machine', { boxId }) },
      })
  }

  async #removeVolumes(boxId: string): Promise<void> {
    const { http, deploymentId } = this.#options.engine
    for (const name of [getStateVolume(boxId), getHomeVolume(boxId)]) {
      const path = `/volumes/${name}`
      const volume = await http
        .json<{ Labels?: Record<string, string> | null }>({ method: 'GET', path })
        .catch(ignoreStatus(404))
      if (volume?.Labels?.[LABELS.coordinator] !== deploymentId) continue
      await http.json({ method: 'DELETE', path }).catch(ignoreStatus(404))
    }
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
