// The archives of a region: stopped copies of the instances. On btrfs and zfs, a copy shares the data of its source.
import { randomBytes } from 'node:crypto'
import { PassThrough, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Region } from '../../../shared/tiers.ts'
import { type ArchiveContents, ArchiveError, type ArchiveInfo, type ArchiveKey } from '../provider.ts'
import type { Instance, InstanceState } from './api.ts'
import type { IncusClient } from './client.ts'
import { InstanceFiles } from './files.ts'
import type { Instances } from './instances.ts'
import { NO_DEVICES, PATHS } from './machine.ts'
import { getArchiveName, LABELS } from './names.ts'
import type { Placement } from './placement.ts'
import type { Server } from './server.ts'

const EXPORT_TIMEOUT_MS = 6 * 60 * 60_000

export type ArchivesOptions = {
  client: IncusClient
  instances: Instances
  region: Region
  placement: Placement
  getServer(): Promise<Server>
}

export class IncusArchives {
  readonly #options: ArchivesOptions

  constructor(options: ArchivesOptions) {
    this.#options = options
  }

  /** Returns the instance of a complete archive. */
  find(key: ArchiveKey): Promise<Instance | null> {
    return this.#options.instances.find(getArchiveName(this.#options.region, key))
  }

  /** Throws ArchiveError when the archive is missing. */
  async require(key: ArchiveKey): Promise<Instance> {
    const archive = await this.find(key)
    if (archive === null)
      throw new ArchiveError(`The archive ${key.archiveId} is missing in Incus. Use another snapshot.`)
    return archive
  }

  async capture(
    instance: Instance,
    key: ArchiveKey,
    contents: ArchiveContents,
    signal?: AbortSignal,
  ): Promise<ArchiveInfo> {
    const existing = await this.#findInfo(key)
    if (existing !== null) return existing
    const server = await this.#options.getServer()
    const isRunning = instance.status === 'Running'
    const mustPause = isRunning && !server.hasSnapshots
    // Afterwards the copy and its source share their data, which Incus then counts for neither.
    const usedBytes = await this.#measure(instance.name)
    const startedAt = performance.now()
    if (mustPause) await this.#options.instances.changeState(instance.name, 'freeze')
    let archive: Instance
    try {
      archive = await this.#copy(instance, key, server, signal)
    } finally {
      if (mustPause) await this.#options.instances.changeState(instance.name, 'unfreeze')
    }
    const pausedMs = mustPause ? performance.now() - startedAt : 0
    return await this.#complete(archive, key, contents, {
      server,
      usedBytes,
      pausedMs: isRunning ? pausedMs : null,
    })
  }

  async copyFiles(source: ArchiveKey, key: ArchiveKey, signal?: AbortSignal): Promise<ArchiveInfo> {
    const existing = await this.#findInfo(key)
    if (existing !== null) return existing
    const server = await this.#options.getServer()
    const packed = await this.require(source)
    const usedBytes = (await this.#findInfo(source))?.contentBytes ?? 0
    const archive = await this.#copy(packed, key, server, signal)
    return await this.#complete(archive, key, 'files', { server, usedBytes, pausedMs: null })
  }

  remove(key: ArchiveKey): Promise<void> {
    return this.#options.instances.remove(getArchiveName(this.#options.region, key))
  }

  async removeAll(workspaceId: string): Promise<void> {
    const { instances, region } = this.#options
    const labels = { [LABELS.role]: 'archive', [LABELS.workspace]: workspaceId, [LABELS.region]: region }
    for (const { name } of await instances.list(labels)) await instances.remove(name)
  }

  /** Returns the backup of the archive, as Incus exports it. */
  read(key: ArchiveKey): Readable {
    const output = new PassThrough()
    const abort = new AbortController()
    output.on('close', () => abort.abort(new Error('The reader has closed the archive.')))
    this.#export(key, output, abort.signal).catch((error: Error) => output.destroy(error))
    return output
  }

  async write(key: ArchiveKey, content: Readable, signal?: AbortSignal): Promise<ArchiveInfo> {
    const existing = await this.#findInfo(key)
    if (existing !== null) return existing
    const { instances, region, placement, getServer } = this.#options
    const server = await getServer()
    const name = getArchiveName(region, key)
    await instances.import(name, content, {
      pool: server.pool.name,
      query: placement.getQuery(server),
      signal,
    })
    const archive = await instances.load(name)
    if (archive === null) throw new Error('The imported archive does not exist.')
    return await this.#complete(archive, key, 'all', { server, usedBytes: 0, pausedMs: null })
  }

  async #findInfo(key: ArchiveKey): Promise<ArchiveInfo | null> {
    const archive = await this.find(key)
    return archive === null ? null : (JSON.parse(archive.config[LABELS.info] ?? 'null') as ArchiveInfo | null)
  }

  #copy(source: Instance, key: ArchiveKey, server: Server, signal?: AbortSignal): Promise<Instance> {
    const { instances, region } = this.#options
    return instances.create({
      name: getArchiveName(region, key),
      source: { type: 'copy', source: source.name, instance_only: true },
      // The copy is where its source is, which takes no time.
      query: server.isClustered ? { target: source.location } : {},
      config: { ...this.#createLabels(key), [LABELS.info]: '' },
      devices: NO_DEVICES,
      signal,
    })
  }

  async #complete(
    { name }: Instance,
    key: ArchiveKey,
    contents: ArchiveContents,
    { server, usedBytes, pausedMs }: { server: Server; usedBytes: number; pausedMs: number | null },
  ): Promise<ArchiveInfo> {
    const { client, instances } = this.#options
    if (contents === 'files') await new InstanceFiles(client, name).remove(PATHS.state)
    const contentBytes = Math.max(usedBytes, await this.#measure(name))
    const info: ArchiveInfo = { contentBytes, storedBytes: server.hasSnapshots ? 0 : contentBytes, pausedMs }
    await instances.complete(name, {
      config: { ...this.#createLabels(key), [LABELS.info]: JSON.stringify(info) },
      devices: NO_DEVICES,
    })
    return info
  }

  async #measure(name: string): Promise<number> {
    const state = await this.#options.client.get<InstanceState>(`/instances/${name}/state`)
    return Math.max(0, state.disk?.root?.usage ?? 0)
  }

  #createLabels({ workspaceId, archiveId }: ArchiveKey): Record<string, string> {
    return {
      [LABELS.role]: 'archive',
      [LABELS.region]: this.#options.region,
      [LABELS.workspace]: workspaceId,
      [LABELS.archive]: archiveId,
      [LABELS.box]: '',
    }
  }

  async #export(key: ArchiveKey, output: PassThrough, signal: AbortSignal): Promise<void> {
    const { client } = this.#options
    const { name } = await this.require(key)
    // The reader of an archive may be interrupted and repeated.
    const backup = `boxwood-${randomBytes(6).toString('hex')}`
    const path = `/instances/${name}/backups`
    const expiresAt = new Date(Date.now() + EXPORT_TIMEOUT_MS).toISOString()
    const json = {
      name: backup,
      instance_only: true,
      optimized_storage: false,
      compression_algorithm: 'none',
      expires_at: expiresAt,
    }
    await client.call('POST', path, { json, signal, timeoutMs: EXPORT_TIMEOUT_MS })
    try {
      const { body } = await client.stream('GET', `${path}/${backup}/export`, { signal })
      await pipeline(body, output, { end: false })
    } finally {
      // Incus removes a backup that is left when it expires.
      await client.call('DELETE', `${path}/${backup}`).catch(() => undefined)
    }
    // The removal of a backup can break the creation of the next one, which the reader may request.
    output.end()
  }
}
