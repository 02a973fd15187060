// The machines of a region: one instance per box. The calls for a box must not run at the same time.
import { isDeepStrictEqual } from 'node:util'
import type { Region } from '../../../shared/tiers.ts'
import {
  type ArchiveKey,
  type MachineSpec,
  type MachineState,
  PermanentProviderError,
  type Provider,
} from '../provider.ts'
import type { Devices, Instance, InstanceState } from './api.ts'
import type { IncusArchives } from './archives.ts'
import { InstanceFiles } from './files.ts'
import type { IncusImages } from './images.ts'
import type { IncusHost } from './incus-host.ts'
import {
  createDevices,
  createLimits,
  createRootDevice,
  createSettings,
  DEVICE,
  PATHS,
  SECURITY_CONFIG,
} from './machine.ts'
import { getInstanceName, LABELS } from './names.ts'
import type { Placement } from './placement.ts'
import { isFilterFailure } from './protections.ts'
import { isAgentRunning, startAgent } from './run-agent.ts'
import type { Server } from './server.ts'

export const PROVIDER_NAME = 'incus'

export type MachinesOptions = {
  host: IncusHost
  region: Region
  placement: Placement
  images: IncusImages
  archives: IncusArchives
}

export class IncusMachines {
  readonly #options: MachinesOptions
  readonly #host: IncusHost

  constructor(options: MachinesOptions) {
    this.#options = options
    this.#host = options.host
  }

  /** The machines of other regions of the same server are not found. */
  async find(boxId: string): Promise<Instance | null> {
    const instance = await this.#findAnywhere(boxId)
    return instance?.config[LABELS.region] === this.#options.region ? instance : null
  }

  async require(boxId: string): Promise<Instance> {
    const instance = await this.find(boxId)
    if (instance !== null) return instance
    throw new PermanentProviderError('The machine of the box does not exist. Delete the box.')
  }

  /** Returns the fingerprint of the image. */
  async create(
    spec: MachineSpec & { source?: ArchiveKey | undefined },
    signal?: AbortSignal,
  ): Promise<string | null> {
    const existing = await this.find(spec.boxId)
    if (existing !== null) return existing.config[LABELS.image] || null
    const { images, archives, placement } = this.#options
    const server = await this.#host.getServer()
    const archive = spec.source === undefined ? null : await archives.require(spec.source)
    const image =
      archive === null
        ? await images.ensure(spec.image ?? images.defaultImage, signal)
        : (archive.config[LABELS.image] ?? '')
    const instance = await this.#host.instances.create({
      name: getInstanceName(spec.boxId),
      source:
        archive === null
          ? { type: 'image', fingerprint: image }
          : { type: 'copy', source: archive.name, instance_only: true },
      query: placement.getQuery(server, archive?.location),
      config: this.#createConfig(spec, image),
      devices: createRootDevice(spec.tier, server),
      signal,
    })
    // Only now it is known on which member the instance is.
    const devices = await this.#createDevices(spec, server, instance)
    await this.#host.instances.complete(instance.name, { devices })
    return image || null
  }

  async start(spec: MachineSpec & { agentToken: string }): Promise<void> {
    const { client, instances } = this.#host
    await client.settle(getInstanceName(spec.boxId))
    const instance = await this.require(spec.boxId)
    const { name, status } = instance
    if (status === 'Frozen') {
      // Its agent reads the files when it reconnects.
      const files = new InstanceFiles(client, name)
      await files.write(PATHS.token, spec.agentToken)
      await files.write(PATHS.url, this.#host.access.url)
      return await instances.changeState(name, 'unfreeze')
    }
    if (status !== 'Running') {
      await this.#bringUpToDate(spec, instance)
      await instances.changeState(name, 'start').catch(async (error: unknown) => {
        if (!isFilterFailure(error)) throw error
        this.#host.protections.reportMissingFilters(instance.location, error)
        await this.#bringUpToDate(spec, await this.require(spec.boxId))
        await instances.changeState(name, 'start')
      })
    }
    await this.#startAgent(name, spec, { token: spec.agentToken })
  }

  /** Returns false when the machine does not run. */
  async resize(spec: MachineSpec): Promise<boolean> {
    const instance = await this.require(spec.boxId)
    if (instance.status !== 'Running') return false
    const root = createRootDevice(spec.tier, await this.#host.getServer())
    await this.#change(instance, createLimits(spec.tier), root)
    await this.#startAgent(instance.name, spec, { restarts: true })
    return true
  }

  async stop(boxId: string): Promise<void> {
    await this.#host.client.settle(getInstanceName(boxId))
    const instance = await this.find(boxId)
    if (instance !== null) await this.#host.instances.stop(instance)
  }

  async destroy(boxId: string): Promise<void> {
    const name = getInstanceName(boxId)
    await this.#host.client.settle(name)
    // A machine whose creation was interrupted is removed too. After a move, the machine belongs to another region.
    const instance = (await this.#findAnywhere(boxId)) ?? (await this.#host.instances.load(name))
    if (instance === null || instance.config[LABELS.region] === this.#options.region)
      await this.#host.moves.remove(name)
  }

  async inspect(boxId: string): Promise<MachineState> {
    await this.#host.client.settle(getInstanceName(boxId))
    const instance = await this.find(boxId)
    if (instance === null) return 'absent'
    if (instance.status === 'Frozen') return 'frozen'
    if (instance.status !== 'Running') return 'stopped'
    // A box that has rebooted runs without its agent, which the next start starts.
    return (await isAgentRunning(this.#host.client, instance.name, { boxId })) ? 'running' : 'stopped'
  }

  async freeze(boxId: string): Promise<boolean> {
    const instance = await this.find(boxId)
    if (instance?.status === 'Frozen') return true
    if (instance?.status !== 'Running') return false
    await this.#host.instances.changeState(instance.name, 'freeze')
    return true
  }

  /** The engine moves the machine to a member of this region, unless it is on one. */
  async takeOver(boxId: string, source: Provider): Promise<boolean> {
    if (source.name !== PROVIDER_NAME) return false
    const { client, instances, moves } = this.#host
    const { placement, region } = this.#options
    const name = getInstanceName(boxId)
    await client.settle(name)
    const instance = await this.#findAnywhere(boxId)
    if (instance === null) return false
    const server = await this.#host.getServer()
    const config = { [LABELS.region]: region }
    if (await placement.includes(instance.location, server)) {
      await instances.patch(name, { config })
    } else {
      await instances.stop(instance)
      await moves.move(instance, { query: placement.getQuery(server), config })
    }
    return true
  }

  /** The bytes that the files of the box occupy. */
  async measure(boxId: string, signal: AbortSignal): Promise<number> {
    const path = `/instances/${getInstanceName(boxId)}/state`
    const { disk } = await this.#host.client.get<InstanceState>(path, {}, signal)
    return Math.max(0, disk?.[DEVICE.root]?.usage ?? 0)
  }

  /** Starts the agent of a box that has rebooted. */
  async continueAfterReboot(boxId: string): Promise<void> {
    const instance = await this.find(boxId)
    if (instance?.status === 'Running')
      await startAgent(this.#host.client, instance.name, { spec: { boxId } })
  }

  /** Returns the machine in any region of the server. Finishes its move, if that was interrupted. */
  async #findAnywhere(boxId: string): Promise<Instance | null> {
    const { instances, moves } = this.#host
    const name = getInstanceName(boxId)
    const instance = await instances.find(name)
    if (instance !== null) return instance
    return (await moves.finish(name)) ? await instances.find(name) : null
  }

  /** Changes the stopped instance so that it starts with the current configuration and devices. */
  async #bringUpToDate(spec: MachineSpec, instance: Instance): Promise<void> {
    const devices = await this.#createDevices(spec, await this.#host.getServer(), instance)
    await this.#change(instance, { ...SECURITY_CONFIG, ...createLimits(spec.tier) }, devices)
  }

  async #startAgent(
    name: string,
    spec: MachineSpec,
    how: { token: string } | { restarts: true },
  ): Promise<void> {
    const url = this.#host.access.url
    const settings = createSettings({ ...spec, url }, this.#host.options.agentSettings)
    await startAgent(this.#host.client, name, { spec, hostname: spec.hostname, settings, url, ...how })
  }

  #createConfig({ boxId, tier }: MachineSpec, image: string): Record<string, string> {
    return {
      ...SECURITY_CONFIG,
      ...createLimits(tier),
      [LABELS.role]: 'box',
      [LABELS.region]: this.#options.region,
      [LABELS.box]: boxId,
      [LABELS.image]: image,
      // A copy has the keys of its archive.
      [LABELS.workspace]: '',
      [LABELS.archive]: '',
      [LABELS.info]: '',
    }
  }

  async #createDevices(spec: MachineSpec, server: Server, { location }: Instance): Promise<Devices> {
    const { agentVolumes, access, protections } = this.#host
    const [network, agentVolume] = await Promise.all([
      this.#host.getNetwork(),
      agentVolumes.ensure(server, location),
    ])
    const socket = access.createDevice(server, location)
    const hasFilters = protections.hasFilters(location)
    return createDevices({ tier: spec.tier, server, network, agentVolume, socket, hasFilters })
  }

  /** Sends only what differs: a change of the configuration takes a tenth of a start. */
  async #change(instance: Instance, wantedConfig: Record<string, string>, wantedDevices: Devices) {
    const config = pickChanges(instance.config, wantedConfig)
    // The range of user ids may be too small for it.
    delete config['security.idmap.isolated']
    const devices = pickChanges(instance.devices, wantedDevices)
    if (Object.keys(config).length === 0 && Object.keys(devices).length === 0) return
    await this.#host.instances.patch(instance.name, { config, devices })
  }
}

export const pickChanges = <T>(
  current: Readonly<Record<string, T>>,
  wanted: Readonly<Record<string, T>>,
): Record<string, T> =>
  Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) => !isDeepStrictEqual(current[name], value)),
  )
