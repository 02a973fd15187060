// What the incus providers of all regions share: the connection, the files of the agent, and the network of the boxes.
import type { Logger } from 'pino'
import type { AgentFiles } from '../container/agent-files.ts'
import type { EngineAddress } from '../engine-http/address.ts'
import { type AgentAccess, createAgentAccess } from './agent-access.ts'
import { AgentVolumes, type VolumeFiles } from './agent-volume.ts'
import { IncusClient } from './client.ts'
import { Instances } from './instances.ts'
import { Moves } from './moves.ts'
import { ensureNetwork } from './network.ts'
import { Protections } from './protections.ts'
import { readServer, type Server } from './server.ts'

export type IncusHostOptions = {
  address: EngineAddress
  deploymentId: string
  agentFiles: VolumeFiles & Pick<AgentFiles, 'buildId'>
  agentSettings: Readonly<Record<string, string>>
  /** See ProviderContext. null: agents connect to the coordinator's URL. */
  agentSocketDir: string | null
  coordinatorUrl: string
  defaultImage: string
  /** A simplestreams server. Default: IMAGE_SERVER. */
  imageServer?: string
  /** null: the pool of the profile `default`. */
  pool: string | null
  log: Pick<Logger, 'debug' | 'info' | 'warn'>
}

/** A part of a provider that brings its boxes up to date after each connection to the server. */
export type ConnectionListener = (server: Server) => Promise<void>

export class IncusHost {
  readonly options: IncusHostOptions
  readonly client: IncusClient
  readonly protections: Protections
  readonly instances: Instances
  readonly moves: Moves
  readonly agentVolumes: AgentVolumes
  readonly access: AgentAccess
  readonly #listeners: ConnectionListener[] = []
  readonly #rebootListeners: ((instance: string) => void)[] = []
  #server: Promise<Server> | null = null
  #network: Promise<string> | null = null
  #update: Promise<void> = Promise.resolve()

  constructor(options: IncusHostOptions) {
    this.options = options
    this.client = new IncusClient({
      address: options.address,
      onConnect: () => this.#handleConnection(),
      onReboot: (instance) => {
        for (const listener of this.#rebootListeners) listener(instance)
      },
    })
    this.protections = new Protections(options.log)
    this.instances = new Instances(this.client, options.deploymentId, (error) =>
      this.protections.reportSharedUserIds(error),
    )
    this.moves = new Moves(this.instances, options.log)
    this.access = createAgentAccess(options)
    this.agentVolumes = new AgentVolumes(this.client, options.deploymentId, options.agentFiles)
  }

  onConnect(listener: ConnectionListener): void {
    this.#listeners.push(listener)
  }

  /** Called with the name of an instance that has rebooted, by itself or by an operator. */
  onReboot(listener: (instance: string) => void): void {
    this.#rebootListeners.push(listener)
  }

  /** What is known of the server: read once per connection. */
  getServer(): Promise<Server> {
    return keep(
      this.#server,
      () => readServer(this.client, this.options.pool),
      (value) => {
        this.#server = value
      },
    )
  }

  /** The name of the network of the boxes, which is created when it is missing. */
  getNetwork(): Promise<string> {
    const { deploymentId, log } = this.options
    const create = async () => await ensureNetwork(this.client, await this.getServer(), deploymentId, log)
    return keep(this.#network, create, (value) => {
      this.#network = value
    })
  }

  /** Resolves when the work after the last connection has ended. */
  waitUntilUpdated(): Promise<void> {
    return this.#update
  }

  async close(): Promise<void> {
    await this.client.close()
    await this.#update
  }

  #handleConnection(): void {
    this.#server = null
    this.#network = null
    this.agentVolumes.forget()
    this.protections.retryFilters()
    this.#update = this.#bringUpToDate().catch((err: unknown) =>
      this.options.log.warn({ err }, 'failed to bring the boxes in Incus up to date'),
    )
  }

  async #bringUpToDate(): Promise<void> {
    await this.moves.finishAll()
    await this.instances.removeIncomplete()
    const server = await this.getServer()
    for (const listener of this.#listeners) await listener(server)
    await this.agentVolumes.removeUnused(server)
  }
}

/** Returns the value, or computes and stores it. A failure is not stored. */
function keep<T>(
  value: Promise<T> | null,
  compute: () => Promise<T>,
  store: (value: Promise<T> | null) => void,
): Promise<T> {
  if (value !== null) return value
  const computed = compute()
  store(computed)
  computed.catch(() => store(null))
  return computed
}
