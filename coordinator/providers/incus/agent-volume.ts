// The volume with the files of the agent, which the boxes of a member share and cannot change. Each build has a volume.
import { Readable } from 'node:stream'
import { extract, type Header, pack } from 'tar-stream'
import type { AgentFiles } from '../container/agent-files.ts'
import { hasStatus } from '../engine-http/errors.ts'
import { PermanentProviderError } from '../provider.ts'
import type { Volume } from './api.ts'
import { type IncusClient, readReason } from './client.ts'
import { getAgentVolume, LABELS } from './names.ts'
import type { Server } from './server.ts'

/** The files of a volume: the current build and the previous one. */
export type VolumeFiles = Pick<AgentFiles, 'contentId' | 'previousBuildId' | 'pack'>

const CREATE_TIMEOUT_MS = 10 * 60_000

export class AgentVolumes {
  readonly #client: IncusClient
  readonly #deploymentId: string
  readonly #files: VolumeFiles
  /** Member → the creation of its volume. */
  readonly #volumes = new Map<string, Promise<string>>()

  constructor(client: IncusClient, deploymentId: string, files: VolumeFiles) {
    this.#client = client
    this.#deploymentId = deploymentId
    this.#files = files
  }

  get name(): string {
    const { contentId, previousBuildId } = this.#files
    return getAgentVolume(this.#deploymentId, `${contentId} ${previousBuildId ?? ''}`)
  }

  /** Creates the volume on the member when it is missing, and returns its name. */
  ensure(server: Server, location: string): Promise<string> {
    const existing = this.#volumes.get(location)
    if (existing !== undefined) return existing
    const creation = this.#create(server, location)
    this.#volumes.set(location, creation)
    creation.catch(() => this.#volumes.delete(location))
    return creation
  }

  /** The volumes may have been removed while the server could not be reached. */
  forget(): void {
    this.#volumes.clear()
  }

  /** Removes the volumes of other builds that no instance uses. */
  async removeUnused(server: Server): Promise<void> {
    const path = `/storage-pools/${encodeURIComponent(server.pool.name)}/volumes/custom`
    const prefix = `boxwood-agent-${this.#deploymentId}-`
    for (const { name, config, used_by: users, location } of await this.#client.get<Volume[]>(path, {
      recursion: 1,
    })) {
      const isOwn = config[LABELS.coordinator] === this.#deploymentId
      if (!isOwn || !name.startsWith(prefix) || name === this.name || (users?.length ?? 0) > 0) continue
      const query = server.isClustered ? { target: location } : {}
      // An instance may have been moved to the member meanwhile.
      await this.#client.call('DELETE', `${path}/${name}`, { query }).catch(() => undefined)
    }
  }

  async #create(server: Server, location: string): Promise<string> {
    const { name } = this
    const path = `/storage-pools/${encodeURIComponent(server.pool.name)}/volumes/custom`
    const query = server.isClustered ? { target: location } : {}
    const existing = await this.#client.find<Volume>(`${path}/${name}`, query)
    if (existing?.config[LABELS.complete] === name) return name
    if (existing !== null) {
      if (existing.config[LABELS.coordinator] !== this.#deploymentId)
        throw new PermanentProviderError(
          `The volume ${name} in Incus does not belong to this coordinator. Rename or remove it.`,
        )
      await this.#client.call('DELETE', `${path}/${name}`, { query })
    }
    const labels = { [LABELS.coordinator]: this.#deploymentId, [LABELS.role]: 'agent' }
    await this.#client
      .call('POST', path, {
        query,
        content: packBackup(
          this.#files.pack({ hasBuild: false, hasNode: false, linkedBuild: null, isNew: true }),
          name,
          server.pool,
          labels,
        ),
        headers: { 'content-type': 'application/octet-stream', 'x-incus-name': name },
        timeoutMs: CREATE_TIMEOUT_MS,
      })
      .catch((error: unknown) => {
        if (!hasStatus(error, 409) && !/already exists/i.test(readReason(error))) throw error
      })
    await this.#client.call('PATCH', `${path}/${name}`, {
      query,
      json: {
        config: {
          ...labels,
          [LABELS.complete]: name,
          // Boxes have different user ids.
          'security.shifted': 'true',
        },
      },
    })
    return name
  }
}

/** Turns a tar stream of files into the backup of a volume that contains them, and has the labels from its creation on. */
function packBackup(
  files: Readable,
  name: string,
  pool: Server['pool'],
  labels: Readonly<Record<string, string>>,
): Readable {
  const backup = pack()
  const index = `name: ${name}
backend: ${pool.driver}
pool: ${pool.name}
optimized: false
optimized_header: false
type: custom
config:
  volume:
    name: ${name}
    type: custom
    content_type: filesystem
    config: ${JSON.stringify(labels)}
`
  backup.entry({ name: 'backup/index.yaml', mode: 0o644 }, index)
  backup.entry({ name: 'backup/volume', type: 'directory', mode: 0o755 })
  const reader = extract()
  reader.on('entry', (header: Header, content, next) => {
    // The upload has failed.
    if (backup.destroying) return void reader.destroy()
    const entry = backup.entry({ ...header, name: `backup/volume/${header.name}`, uid: 0, gid: 0 }, next)
    content.pipe(entry)
  })
  reader.on('finish', () => backup.finalize())
  reader.on('error', (error) => backup.destroy(error))
  files.on('error', (error) => backup.destroy(error as Error))
  files.pipe(reader)
  return Readable.from(backup)
}
