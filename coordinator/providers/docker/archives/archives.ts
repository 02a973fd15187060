// The archives of the boxes of an engine: their image and the files of their volumes, as a tar stream in the archive store.
import { Readable } from 'node:stream'
import { TAR_TRAILER, type TarEntry, TarReader } from '../../container/tar-entries.ts'
import type { Archives } from '../../parts/archives/archives.ts'
import { type ArchiveContents, ArchiveError, type ArchiveInfo, type ArchiveKey } from '../../provider.ts'
import type { Engine } from '../engine.ts'
import { withHelper } from '../helper-container.ts'
import { getHomeVolume, getStateVolume } from '../names.ts'
import type { ArchiveImages } from './archive-images.ts'
import { IMAGE_ROOT } from './image-files.ts'
import type { BoxQueueRunner, MachinePause, MachinePauses } from './machine-pause.ts'
import { getRoot, readVolume, type VolumeRoot, writeVolume } from './volume-files.ts'

export type EngineArchivesOptions = {
  engine: Engine
  /** The archive store of the engine, which all of its regions share. */
  store: Archives
  images: ArchiveImages
  pauses: MachinePauses
  runExclusive: BoxQueueRunner
}

const VOLUMES = { files: ['home'], all: ['home', 'state'] } as const satisfies Record<
  ArchiveContents,
  readonly VolumeRoot[]
>

export class EngineArchives {
  readonly #engine: Engine
  readonly #store: Archives
  readonly #images: ArchiveImages
  readonly #pauses: MachinePauses
  readonly #runExclusive: BoxQueueRunner
  /** The archives that are created, whose images are not left over. */
  readonly #incomplete = new Map<string, number>()
  /** A failed call, or a killed coordinator, may have left images. */
  #hasLeftovers = true

  constructor({ engine, store, images, pauses, runExclusive }: EngineArchivesOptions) {
    this.#engine = engine
    this.#store = store
    this.#images = images
    this.#pauses = pauses
    this.#runExclusive = runExclusive
  }

  /**
   * See Provider. The captures of a box must run one at a time. The processes are paused while the layer is committed and the
   * volumes are read; the image is read afterwards.
   */
  async capture(
    boxId: string,
    archive: ArchiveKey,
    contents: ArchiveContents,
    callerSignal?: AbortSignal,
  ): Promise<ArchiveInfo> {
    const reading = new AbortController()
    const signal = AbortSignal.any([reading.signal, ...(callerSignal === undefined ? [] : [callerSignal])])
    const pause = this.#pauses.begin(boxId, this.#runExclusive)
    const info = { contentBytes: 0, pausedMs: null as number | null }
    const content = Readable.from(this.#readMachine(boxId, archive, contents, pause, info, signal), {
      objectMode: false,
    })
    return await this.#track(archive, async () => {
      try {
        return await this.#store.write(archive, content, callerSignal, () => info)
      } catch (error) {
        reading.abort(error)
        await this.#removeImage(archive)
        throw error
      } finally {
        reading.abort(new Error('The capture has ended.'))
        content.destroy()
        await pause.end()
      }
    })
  }

  /** See Provider. */
  async copyFiles(source: ArchiveKey, archive: ArchiveKey, signal?: AbortSignal): Promise<ArchiveInfo> {
    return await this.#track(archive, async () => {
      const info = await this.#store.copy(source, archive, [...VOLUMES.files, IMAGE_ROOT], signal)
      await this.#images.copy(source.archiveId, archive.archiveId).catch((err: unknown) => {
        this.#engine.log.debug({ err }, 'the image of a copied archive is loaded when it is used')
      })
      return info
    })
  }

  read(archive: ArchiveKey): Readable {
    return this.#store.read(archive)
  }

  write(archive: ArchiveKey, content: Readable, signal?: AbortSignal): Promise<ArchiveInfo> {
    return this.#store.write(archive, content, signal)
  }

  /**
   * Fills the empty volumes of a box, and returns the name of the image for its container. Throws ArchiveError when the archive is
   * missing or damaged.
   */
  async restore(archive: ArchiveKey, boxId: string, signal?: AbortSignal): Promise<string> {
    return await this.#track(archive, async () => {
      const content = this.#store.read(archive)
      const reader = new TarReader(content)
      try {
        const next = await this.#restoreVolumes(boxId, reader, signal)
        const { archiveId } = archive
        if ((await this.#images.find(archiveId)) === null) {
          if (next === null)
            throw new ArchiveError(`Archive ${archiveId} has no image. Use another snapshot.`)
          await this.#images.load(archiveId, next, reader, signal)
        }
        return this.#images.getReference(archiveId)
      } finally {
        content.destroy()
      }
    })
  }

  async remove(archive: ArchiveKey): Promise<void> {
    await this.#store.remove(archive)
    await this.#images.remove(archive.archiveId)
    if (this.#hasLeftovers) await this.removeUnusedImages()
  }

  async removeAll(workspaceId: string): Promise<void> {
    await this.#store.removeAll(workspaceId)
    await this.removeUnusedImages()
  }

  /**
   * Removes the images of archives that a box has used that was destroyed. No call grows with the number of images.
   * @param imageId of the container. null: there was none
   */
  async removeImagesOf(imageId: string | null): Promise<void> {
    const archiveIds = imageId === null ? null : await this.#images.listNamesOf(imageId)
    // An earlier call has removed the container.
    if (archiveIds === null) return await this.removeUnusedImages()
    const unused: string[] = []
    for (const archiveId of archiveIds)
      if (!this.#incomplete.has(archiveId) && !(await this.#store.has(archiveId))) unused.push(archiveId)
    for (const archiveId of unused) await this.#images.remove(archiveId)
    if (this.#hasLeftovers) await this.removeUnusedImages()
  }

  /** Removes the images of archives that do not exist, except those of existing boxes. */
  async removeUnusedImages(): Promise<void> {
    // New images have no name at first: a later call removes those that remain without one.
    const isIdle = this.#incomplete.size === 0
    this.#hasLeftovers = !isIdle
    try {
      if (isIdle) await this.#images.removeUnnamed()
      const archiveIds = await this.#images.list()
      if (archiveIds.length === 0) return
      const existing = new Set(await this.#store.list())
      for (const archiveId of archiveIds)
        if (!existing.has(archiveId) && !this.#incomplete.has(archiveId)) await this.#images.remove(archiveId)
    } catch (error) {
      this.#hasLeftovers = true
      throw error
    }
  }

  async #restoreVolumes(
    boxId: string,
    reader: TarReader,
    signal: AbortSignal | undefined,
  ): Promise<TarEntry | null> {
    const mounts = [
      { volume: getHomeVolume(boxId), path: '/home' },
      { volume: getStateVolume(boxId), path: '/state' },
    ]
    return await withHelper(this.#engine, mounts, async (helper) => {
      const remaining = new Set<string>(VOLUMES.all)
      let next = await reader.next()
      while (next !== null && remaining.delete(getRoot(next.name)))
        next = await writeVolume(this.#engine, helper, getRoot(next.name) as VolumeRoot, next, reader, signal)
      if (next === null || getRoot(next.name) === IMAGE_ROOT) return next
      throw new ArchiveError('The archive is not an archive of a box with an image. Use another snapshot.')
    })
  }

  async *#readMachine(
    boxId: string,
    { archiveId }: ArchiveKey,
    contents: ArchiveContents,
    pause: MachinePause,
    info: { contentBytes: number; pausedMs: number | null },
    signal: AbortSignal,
  ): AsyncGenerator<Buffer, void, undefined> {
    const count = (bytes: number) => {
      info.contentBytes += bytes
    }
    await pause.start()
    const committing = this.#images.commit(boxId, archiveId, signal)
    committing.catch(() => {})
    for (const root of VOLUMES[contents]) yield* readVolume(this.#engine, boxId, root, count, signal)
    await committing
    info.pausedMs = await pause.end()
    await this.#images.flatten(archiveId, signal)
    for await (const data of this.#images.save(archiveId, signal)) {
      count(data.length)
      yield data
    }
    yield TAR_TRAILER
  }

  /** Removes the image of an archive that could not be stored. */
  async #removeImage(archive: ArchiveKey): Promise<void> {
    try {
      if (!(await this.#store.has(archive.archiveId))) await this.#images.remove(archive.archiveId)
    } catch (err) {
      this.#engine.log.warn({ err, ...archive }, 'the image of an incomplete archive is removed later')
    }
  }

  /** The images of the archives of running calls are not left over. */
  async #track<T>({ archiveId }: ArchiveKey, work: () => Promise<T>): Promise<T> {
    this.#incomplete.set(archiveId, (this.#incomplete.get(archiveId) ?? 0) + 1)
    try {
      return await work()
    } catch (error) {
      this.#hasLeftovers = true
      throw error
    } finally {
      const count = (this.#incomplete.get(archiveId) ?? 1) - 1
      if (count === 0) this.#incomplete.delete(archiveId)
      else this.#incomplete.set(archiveId, count)
    }
  }
}
