// Creates, finds, copies and removes instances of this deployment. An instance whose creation was interrupted does not exist.

import { hasStatus, ignoreStatus } from '../engine-http/errors.ts'
import { ArchiveError, PermanentProviderError } from '../provider.ts'
import type { Instance, InstanceSettings } from './api.ts'
import { type IncusClient, IncusOperationError } from './client.ts'
import { filterByLabels, LABELS } from './names.ts'
import { isUserIdFailure } from './protections.ts'

const STOP_TIMEOUT_SECONDS = 10
/** A copy between members takes as long as the network needs. */
const COPY_TIMEOUT_MS = 6 * 60 * 60_000

export type CreateOptions = InstanceSettings & {
  name: string
  source: Record<string, unknown>
  query: { target?: string }
  /** Needed for a copy on another member. */
  architecture?: string
  signal?: AbortSignal | undefined
}

export class Instances {
  readonly client: IncusClient
  readonly #deploymentId: string
  readonly #onSharedUserIds: (error: unknown) => void
  /** The instances that this process is creating. */
  readonly #creating = new Set<string>()
  readonly #removals = new Map<string, Promise<void>>()
  /** The instances that a move of this process uses. */
  readonly #moving = new Set<string>()

  /** @param onSharedUserIds called when the server has no user ids for an instance that no other instance has */
  constructor(
    client: IncusClient,
    deploymentId: string,
    onSharedUserIds: (error: unknown) => void = () => undefined,
  ) {
    this.client = client
    this.#deploymentId = deploymentId
    this.#onSharedUserIds = onSharedUserIds
  }

  /** Returns the instance, complete or not, also of another deployment. */
  load(name: string): Promise<Instance | null> {
    return this.client.find<Instance>(`/instances/${name}`)
  }

  /** Returns a complete instance of this deployment. */
  async find(name: string): Promise<Instance | null> {
    const instance = await this.load(name)
    return instance !== null && this.#isOwn(instance) && isComplete(instance) ? instance : null
  }

  /** Instances of this deployment with these labels, complete or not. */
  list(labels: Readonly<Record<string, string>>): Promise<Instance[]> {
    const filter = filterByLabels({ [LABELS.coordinator]: this.#deploymentId, ...labels })
    return this.client.get<Instance[]>('/instances', { recursion: 1, filter })
  }

  /** The names of all instances of the server, with those of other owners and those on members that cannot be reached. */
  async listNames(): Promise<string[]> {
    const urls = await this.client.get<string[]>('/instances')
    return urls.map((url) => url.replace(/^.*\/|\?.*$/g, ''))
  }

  /**
   * Creates an instance, which is incomplete until complete() is called, and replaces an incomplete one. Waits for an operation of
   * an earlier coordinator on it first.
   */
  async create({
    name,
    source,
    query,
    architecture,
    config,
    devices,
    signal,
  }: CreateOptions): Promise<Instance> {
    this.#creating.add(name)
    try {
      await this.client.settle(name)
      const existing = await this.load(name)
      if (existing !== null) {
        if (isComplete(existing) && this.#isOwn(existing)) return existing
        await this.#remove(existing)
      }
      const json = {
        name,
        type: 'container',
        profiles: [],
        ...(architecture !== undefined && { architecture }),
        source,
        config: { ...config, [LABELS.coordinator]: this.#deploymentId, [LABELS.complete]: '' },
        devices,
      }
      await this.#create(json, { query, signal })
      return await this.client.get<Instance>(`/instances/${name}`)
    } catch (error) {
      await this.#removeIncomplete(name)
      throw error
    } finally {
      this.#creating.delete(name)
    }
  }

  /** Creates an instance from the backup of one. */
  async import(
    name: string,
    content: NodeJS.ReadableStream,
    options: { pool: string; query: { target?: string }; signal?: AbortSignal | undefined },
  ): Promise<void> {
    this.#creating.add(name)
    try {
      const existing = await this.load(name)
      if (existing !== null) await this.#remove(existing)
      await this.client.call('POST', '/instances', {
        query: options.query,
        content: content as import('node:stream').Readable,
        headers: {
          'content-type': 'application/octet-stream',
          'x-incus-name': name,
          'x-incus-pool': options.pool,
        },
        signal: options.signal,
        timeoutMs: COPY_TIMEOUT_MS,
      })
    } catch (error) {
      await this.#removeIncomplete(name)
      throw error instanceof IncusOperationError
        ? new ArchiveError(`The archive is damaged: ${error.reason}`, { cause: error })
        : error
    } finally {
      this.#creating.delete(name)
    }
  }

  /** Changes the instance, which exists from now on. */
  async complete(name: string, settings: InstanceSettings = {}): Promise<void> {
    await this.patch(name, { ...settings, config: { ...settings.config, [LABELS.complete]: name } })
  }

  async patch(name: string, json: InstanceSettings): Promise<void> {
    await this.client.call('PATCH', `/instances/${name}`, { json })
  }

  async changeState(name: string, action: 'start' | 'freeze' | 'unfreeze'): Promise<void> {
    await this.client.call('PUT', `/instances/${name}/state`, { json: { action, timeout: -1 } })
  }

  /** Terminates every process: by the init of the image, and by force when it does not do it in time. */
  async stop({ name, status }: Pick<Instance, 'name' | 'status'>): Promise<void> {
    if (status === 'Stopped') return
    const stop = (force: boolean) =>
      this.client.call('PUT', `/instances/${name}/state`, {
        json: { action: 'stop', force, timeout: STOP_TIMEOUT_SECONDS },
      })
    // A frozen init handles no signal.
    if (status === 'Frozen') await this.changeState(name, 'unfreeze')
    await stop(false).catch(async (error: unknown) => {
      if (!isFailure(error)) throw error
      await stop(true).catch(async (failure: unknown) => {
        // The processes have exited meanwhile.
        if (!isFailure(failure) || (await this.load(name))?.status !== 'Stopped') throw failure
      })
    })
  }

  /** Renames a stopped instance. */
  async rename(name: string, newName: string): Promise<void> {
    await this.client.settle(name)
    await this.client.call('POST', `/instances/${name}`, { json: { name: newName } })
  }

  /** No-op when absent. */
  async remove(name: string): Promise<void> {
    await this.client.settle(name)
    const instance = await this.load(name)
    if (instance !== null) await this.#remove(instance)
  }

  /** Runs a move. The instances are not removed meanwhile, although they are incomplete. */
  async whileMoving<T>(names: readonly string[], move: () => Promise<T>): Promise<T> {
    for (const name of names) this.#moving.add(name)
    try {
      return await move()
    } finally {
      for (const name of names) this.#moving.delete(name)
    }
  }

  isMoving(name: string): boolean {
    return this.#moving.has(name)
  }

  /** Removes incomplete instances that no operation is creating. */
  async removeIncomplete(): Promise<void> {
    for (const { name } of (await this.list({})).filter((instance) => !isComplete(instance))) {
      if (this.#isUsed(name)) continue
      // It may have been created since.
      const instance = await this.load(name)
      if (instance === null || isComplete(instance) || this.#isUsed(name)) continue
      // A copy with this label belongs to an interrupted move that could not be finished (moves.ts).
      if (!instance.config[LABELS.replaces]) await this.#remove(instance)
    }
  }

  async #create(json: { config?: Record<string, string> }, options: Pick<CreateOptions, 'query' | 'signal'>) {
    const post = (content: object) =>
      this.client.call('POST', '/instances', { ...options, json: content, timeoutMs: COPY_TIMEOUT_MS })
    try {
      await post(json)
    } catch (error) {
      if (!isUserIdFailure(error)) throw error
      this.#onSharedUserIds(error)
      await post({ ...json, config: { ...json.config, 'security.idmap.isolated': 'false' } })
    }
  }

  async #removeIncomplete(name: string): Promise<void> {
    // The server may be down: then the next connection removes the instance.
    const instance = await this.load(name).catch(() => null)
    if (instance === null || isComplete(instance) || this.client.hasUnsettled(name)) return
    await this.#remove(instance).catch(() => undefined)
  }

  /** Incus refuses a second removal of an instance while the first one is in progress. */
  #remove(instance: Instance): Promise<void> {
    const { name } = instance
    const existing = this.#removals.get(name)
    if (existing !== undefined) return existing
    const removal = this.#removeNow(instance).finally(() => this.#removals.delete(name))
    this.#removals.set(name, removal)
    return removal
  }

  async #removeNow(instance: Instance): Promise<void> {
    const { name, status } = instance
    if (!this.#isOwn(instance))
      throw new PermanentProviderError(
        `The instance ${name} in Incus does not belong to this coordinator. Rename or remove it.`,
      )
    if (status !== 'Stopped')
      await this.client
        .call('PUT', `/instances/${name}/state`, { json: { action: 'stop', force: true, timeout: -1 } })
        .catch(async (error: unknown) => {
          if (!isFailure(error) || (await this.load(name))?.status === status) throw error
        })
    await this.client.call('DELETE', `/instances/${name}`).catch(ignoreStatus(404))
  }

  #isUsed(name: string): boolean {
    return this.#creating.has(name) || this.#moving.has(name) || this.client.hasUnsettled(name)
  }

  #isOwn({ config }: Instance): boolean {
    return config[LABELS.coordinator] === this.#deploymentId
  }
}

export const isComplete = ({ name, config }: Instance): boolean => config[LABELS.complete] === name

/** The server has answered. */
const isFailure = (error: unknown): boolean =>
  error instanceof IncusOperationError || hasStatus(error, 400, 404, 500)
