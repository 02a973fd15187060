// The images with the writable layers of captured boxes. The engine keeps them as a cache of the archives: a box that is restored
// on the same engine needs no copy of its image.
import { Readable } from 'node:stream'
import type { TarEntry, TarReader } from '../../container/tar-entries.ts'
import { hasStatus, ignoreStatus } from '../../engine-http/errors.ts'
import type { Engine } from '../engine.ts'
import type { EngineImage, EngineImages } from '../images/images.ts'
import { loadImage } from '../images/load-image.ts'
import {
  createLabels,
  filterByLabels,
  getArchiveRepository,
  getContainerName,
  LABELS,
  type ObjectRole,
} from '../names.ts'
import { flattenImage, importContainer } from './flatten-image.ts'
import { addImageRoot, readImage } from './image-files.ts'

type Listed = { Id: string; RepoTags?: string[] | null; Labels?: Record<string, string> | null }

const ARCHIVE_ROLE: ObjectRole = 'archive'

/** Engines refuse images with more than about 125 layers. */
const MAX_LAYERS = 100

export class ArchiveImages {
  readonly #engine: Engine
  readonly #images: Pick<EngineImages, 'find'>
  readonly #repository: string
  readonly #maxLayers: number

  /** @param maxLayers only tests set it */
  constructor(engine: Engine, images: Pick<EngineImages, 'find'>, maxLayers = MAX_LAYERS) {
    this.#engine = engine
    this.#images = images
    this.#maxLayers = maxLayers
    this.#repository = getArchiveRepository(engine.deploymentId)
  }

  getReference(archiveId: string): string {
    return `${this.#repository}:${archiveId}`
  }

  find(archiveId: string): Promise<EngineImage | null> {
    return this.#images.find(this.getReference(archiveId))
  }

  /** Creates the image from the machine. */
  async commit(boxId: string, archiveId: string, signal?: AbortSignal): Promise<void> {
    try {
      await this.#commitLayer(boxId, archiveId, signal)
    } catch (error) {
      if (!hasIncompleteHistory(error)) throw error
      await this.#importMachine(boxId, archiveId, signal)
    }
  }

  async #commitLayer(boxId: string, archiveId: string, signal: AbortSignal | undefined): Promise<void> {
    const labels = createLabels(this.#engine.deploymentId, 'archive', { archiveId })
    const query = new URLSearchParams({
      container: getContainerName(boxId),
      repo: this.#repository,
      tag: archiveId,
      // The caller has paused the processes.
      pause: 'false',
    })
    for (const [name, value] of Object.entries(labels)) query.append('changes', `LABEL ${name}=${value}`)
    await this.#engine.http.json({
      method: 'POST',
      path: `/commit?${query}`,
      json: {},
      signal,
      // The engine copies the layer.
      timeoutMs: null,
    })
  }

  /** The image has a single layer, with all files. */
  async #importMachine(boxId: string, archiveId: string, signal: AbortSignal | undefined): Promise<void> {
    const container = getContainerName(boxId)
    const { Config: config } = await this.#engine.http.json<{ Config: { Env?: string[] | null } }>({
      method: 'GET',
      path: `/containers/${container}/json`,
      signal,
    })
    await importContainer(this.#engine, container, this.getReference(archiveId), config.Env ?? [], signal)
  }

  /** Yields the image as entries of an archive. */
  async *save(archiveId: string, signal: AbortSignal): AsyncGenerator<Buffer, void, undefined> {
    const { body } = await this.#engine.http.stream({
      method: 'GET',
      path: `/images/${this.getReference(archiveId)}/get`,
      signal,
      timeoutMs: null,
    })
    try {
      yield* addImageRoot(body)
    } finally {
      body.destroy()
    }
  }

  /** Merges the layers of the image when it has almost as many as engines allow. */
  async flatten(archiveId: string, signal: AbortSignal): Promise<void> {
    const image = await this.find(archiveId)
    if (image === null || image.layerCount < this.#maxLayers) return
    await flattenImage(this.#engine, this.getReference(archiveId), image, signal)
    await this.#removeById(image.id)
  }

  /** Loads the image of an archive into the engine. */
  async load(archiveId: string, first: TarEntry, reader: TarReader, signal?: AbortSignal): Promise<void> {
    const reference = this.getReference(archiveId)
    const content = Readable.from(readImage(first, reader, reference), { objectMode: false })
    const failed = new Promise<never>((_, reject) => content.once('error', reject))
    failed.catch(() => {})
    const loading = loadImage(this.#engine, content, signal)
    loading.catch(() => content.destroy())
    await Promise.race([loading, failed])
    const problem = await loading
    if ((await this.find(archiveId)) !== null) return
    throw new Error(`The engine has not loaded the image of the archive: ${problem ?? 'no reason given'}`)
  }

  /** The archives share the image. No-op when the engine does not have it. */
  async copy(source: string, archiveId: string): Promise<void> {
    await this.#engine.http
      .json({
        method: 'POST',
        path: `/images/${this.getReference(source)}/tag`,
        query: { repo: this.#repository, tag: archiveId },
      })
      .catch(ignoreStatus(404))
  }

  /** The image of an existing box remains. Returns whether the engine no longer has the name. */
  remove(archiveId: string): Promise<boolean> {
    return this.#removeById(this.getReference(archiveId))
  }

  /** Removes the images without a name: their commit or their import was repeated. Those of existing boxes remain. */
  async removeUnnamed(): Promise<void> {
    const images = await this.#engine.http.json<Listed[]>({
      method: 'GET',
      path: '/images/json',
      // With two labels, Podman 4.3 finds no image.
      query: { filters: filterByLabels({ [LABELS.coordinator]: this.#engine.deploymentId }) },
    })
    for (const { Id, RepoTags: tags, Labels: labels } of images) {
      const isUnnamed = (tags ?? []).every((tag) => tag.includes('<none>'))
      if (isUnnamed && labels?.[LABELS.role] === ARCHIVE_ROLE) await this.#removeById(Id)
    }
  }

  async #removeById(id: string): Promise<boolean> {
    try {
      await this.#engine.http.json({ method: 'DELETE', path: `/images/${id}` })
      return true
    } catch (error) {
      if (hasStatus(error, 404)) return true
      if (hasStatus(error, 409)) return false
      throw error
    }
  }

  /** Returns the ids of the archives whose images the engine has. */
  async list(): Promise<string[]> {
    const filters = JSON.stringify({ reference: [`${this.#repository}:*`] })
    const images = await this.#engine.http.json<{ RepoTags?: string[] | null }[]>({
      method: 'GET',
      path: '/images/json',
      query: { filters },
    })
    return this.#parseNames(images.flatMap(({ RepoTags: tags }) => tags ?? []))
  }

  /** Returns the ids of the archives that have this image. null: there is no such image. */
  async listNamesOf(imageId: string): Promise<string[] | null> {
    const image = await this.#engine.http
      .json<{ RepoTags?: string[] | null }>({ method: 'GET', path: `/images/${imageId}/json` })
      .catch(ignoreStatus(404))
    return image === undefined ? null : this.#parseNames(image.RepoTags ?? [])
  }

  #parseNames(tags: readonly string[]): string[] {
    const prefix = `${this.#repository}:`
    return tags.filter((tag) => tag.startsWith(prefix)).map((tag) => tag.slice(prefix.length))
  }
}

/**
 * An image without a history is valid. Podman adds its own layer alone to the history, and then refuses to commit the containers
 * of that image, because their layers are not all in the history.
 */
const hasIncompleteHistory = (error: unknown): boolean =>
  hasStatus(error, 500) && /history lists \d+ non-empty layers/.test(error.reason)
