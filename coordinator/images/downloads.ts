// Downloads images for requests and for new boxes, within the limits of the disk and of the operator. Images that nothing has used
// for a week are removed when there is no space for another one.
import type { Logger } from 'pino'
import type { PullProgress } from '../../shared/api/images.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Region } from '../../shared/tiers.ts'
import { rejectLimited } from '../base/rate-limiter.ts'
import { getFullName } from '../boxes/choose-machine.ts'
import type { Db } from '../db/open.ts'
import type { ImageDownloadRow } from '../db/schema.ts'
import { type ImageInfo, PermanentProviderError, type Provider } from '../providers/provider.ts'
import type { Providers } from '../providers/regions.ts'
import { createDiskLowError, createDiskWatch, isDiskLow } from './disk-space.ts'
import { type DownloadKey, deleteDownload, listDownloads, setUsedAt, upsertDownload } from './store.ts'
import { readUsage } from './usage.ts'

export type ImageDownloadsOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'info' | 'warn'>
  providers: Pick<Providers, 'byRegion' | 'inRegion'>
  /** Of all images that the coordinator has downloaded. gib: 0: no limit. */
  limits: { count: number; gib: number }
}

type Target = { region: Region; image: string }

export type ImageDownloads = {
  /**
   * Downloads an image for a request. A workspace has one download at a time.
   * @throws ApiError rate_limited, image_pull_failed; errors of ProviderImages
   */
  pull(
    target: Target & { workspaceId: string },
    signal: AbortSignal,
    onProgress?: (progress: PullProgress) => void,
  ): Promise<ImageInfo>
  /** Downloads the image of a new box when it is missing. null: the default image. Errors as of pull(), without rate_limited. */
  ensure(target: { region: Region; image: string | null }, signal: AbortSignal): Promise<void>
  /** Call it when the image has been removed. */
  forget(target: Target): Promise<void>
  /** Records which images are used. Runs every hour. */
  recordUses(signal: AbortSignal): Promise<void>
}

const UNUSED_MS = 7 * 24 * 60 * 60_000
const RETRY_MS = 10_000
const GIB = 1024 ** 3

export function createImageDownloads(options: ImageDownloadsOptions): ImageDownloads {
  const { db, clock, log, providers, limits } = options
  /** The image that a workspace downloads, and the number of its requests. */
  const running = new Map<string, { image: string; requests: number }>()

  const toKey = ({ region, image }: Target): DownloadKey => ({
    region,
    image: getFullName(image, providers.inRegion(region)),
  })

  function isFull(rows: readonly ImageDownloadRow[], next: DownloadKey): boolean {
    const others = rows.filter(({ region, image }) => region !== next.region || image !== next.image)
    const bytes = others.reduce((sum, { size_bytes: size }) => sum + Number(size), 0)
    return others.length >= limits.count || (limits.gib > 0 && bytes >= limits.gib * GIB)
  }

  /** Removes unused images until there is space. */
  async function makeRoom(next: DownloadKey, provider: Provider): Promise<void> {
    let rows = await listDownloads(db)
    const isLow = await isDiskLow(provider)
    if (!isLow && !isFull(rows, next)) return
    const isUsed = await readUsage(db, providers)
    const unused = rows.filter((row) => row.used_at <= clock.now() - UNUSED_MS && !isUsed(row))
    for (const row of unused) {
      // The images of another engine free no space on this disk.
      const isSameEngine = providers.byRegion.get(row.region)?.name === provider.name
      if (!isSameEngine && !isFull(rows, next)) continue
      if (!(await remove(row))) continue
      rows = rows.filter((other) => other !== row)
      if (!isFull(rows, next) && !(await isDiskLow(provider))) return
    }
    if (isFull(rows, next))
      throw new ApiError(
        'image_pull_failed',
        'The coordinator has downloaded as many images as the operator allows. Remove some with `box images rm`, or ask the operator to raise BOXWOOD_IMAGE_LIMIT or BOXWOOD_IMAGE_GIB.',
      )
    if (await isDiskLow(provider)) throw createDiskLowError()
  }

  /** false: the engine refuses, because another program uses the image, or does not answer. */
  async function remove(row: ImageDownloadRow): Promise<boolean> {
    try {
      await providers.inRegion(row.region).images?.remove(row.image)
    } catch (err) {
      log.warn({ err, image: row.image, region: row.region }, 'failed to remove an unused image')
      // The engine will give the same answer: another program has the image.
      if (err instanceof PermanentProviderError) await setUsedAt(db, row, clock.now())
      return false
    }
    await deleteDownload(db, row)
    log.info({ image: row.image, region: row.region }, 'removed an image that was unused for a week')
    return true
  }

  async function download(
    target: Target,
    signal: AbortSignal,
    onProgress: (progress: PullProgress) => void = () => undefined,
  ): Promise<ImageInfo> {
    const provider = providers.inRegion(target.region)
    if (provider.images === undefined) throw new Error(`Region ${target.region} has no images.`)
    const key = toKey(target)
    await makeRoom(key, provider)
    const low = new AbortController()
    const watch = createDiskWatch(provider, clock.now, () => low.abort(createDiskLowError()))
    const image = await provider.images.pull(
      target.image,
      (progress) => {
        watch()
        onProgress(progress)
      },
      AbortSignal.any([signal, low.signal]),
    )
    await upsertDownload(db, { ...key, size_bytes: image.sizeBytes, used_at: clock.now() })
    return image
  }

  return {
    async pull({ workspaceId, ...target }, signal, onProgress) {
      const { region, image } = toKey(target)
      const name = `${region} ${image}`
      const current = running.get(workspaceId) ?? { image: name, requests: 0 }
      if (current.image !== name) rejectLimited(RETRY_MS, 'The workspace downloads another image already.')
      running.set(workspaceId, current)
      current.requests += 1
      try {
        return await download(target, signal, onProgress)
      } finally {
        current.requests -= 1
        if (current.requests === 0) running.delete(workspaceId)
      }
    },

    async ensure({ region, image }, signal) {
      const { images } = providers.inRegion(region)
      if (images === undefined) return
      const name = image ?? images.defaultImage
      if (!(await images.has(name, signal))) await download({ region, image: name }, signal)
    },

    forget: (target) => deleteDownload(db, toKey(target)),

    async recordUses(signal) {
      const isUsed = await readUsage(db, providers)
      for (const row of await listDownloads(db)) {
        signal.throwIfAborted()
        if (isUsed(row)) await setUsedAt(db, row, clock.now())
      }
    },
  }
}
