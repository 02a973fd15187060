// Lists, downloads and removes the images of the regions. They belong to the engines, and are the same for all workspaces.

import type { Image, ImageList, PullImageRequest, PullProgress } from '../../shared/api/images.ts'
import { type Clock, toTimestampOrNull } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Region } from '../../shared/tiers.ts'
import type { Admit } from '../admission/admit.ts'
import { recordAuditEvent } from '../audit/service.ts'
import {
  assertValidImage,
  chooseImageRegion,
  listImageNames,
  listRegionsWithImages,
} from '../boxes/choose-machine.ts'
import { type ImageUse, listImageUses } from '../boxes/lookups.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { recordDeletion, wasDeleted } from '../http/deletions.ts'
import { ImageError, type ImageInfo, type Provider, type ProviderImages } from '../providers/provider.ts'
import type { Providers } from '../providers/regions.ts'
import type { ImageDownloads } from './downloads.ts'
import { isUseOf } from './usage.ts'

export type ImageServiceOptions = {
  db: Db
  clock: Clock
  providers: Pick<Providers, 'regions' | 'defaultRegion' | 'serves' | 'inRegion' | 'byRegion'>
  admit: Admit
  downloads: Pick<ImageDownloads, 'pull' | 'forget'>
  /** How long an engine has to list its images. Default: 10 s. */
  listTimeoutMs?: number
}

/** Downloads the image. Rejects with the reason of the signal, and with an ApiError. */
export type Pull = (signal: AbortSignal, onProgress?: (progress: PullProgress) => void) => Promise<Image>

/** All functions throw invalid_region, images_unavailable and invalid_image. */
export type ImageService = {
  /** @param region undefined: all regions with images */
  list(region: Region | undefined): Promise<ImageList>
  /** Admits and records the download. Throws policy_denied and workspace_closing. */
  preparePull(actor: Actor, request: PullImageRequest): Promise<Pull>
  /** Throws image_not_found, image_in_use, image_not_downloaded, and control_plane_unavailable when the engine does not answer. */
  remove(actor: Actor, request: PullImageRequest): Promise<void>
}

type Target = { region: Region; provider: Provider; images: ProviderImages }

export function createImageService(options: ImageServiceOptions): ImageService {
  const { db, clock, providers, admit, downloads, listTimeoutMs = 10_000 } = options

  function getTarget(requested: Region | undefined): Target {
    const region = chooseImageRegion(requested, providers)
    const provider = providers.inRegion(region)
    if (provider.images === undefined) throw new Error(`Region ${region} has no images.`)
    return { region, provider, images: provider.images }
  }

  async function list(requested: Region | undefined): Promise<ImageList> {
    const regions = requested === undefined ? listRegionsWithImages(providers) : [getTarget(requested).region]
    const result: ImageList = { images: [], unavailable: [] }
    for (const outcome of await Promise.all(regions.map(listRegion))) {
      if ('message' in outcome) result.unavailable.push(outcome)
      else result.images.push(...outcome.images)
    }
    return result
  }

  async function listRegion(region: Region): Promise<{ images: Image[] } | ImageList['unavailable'][number]> {
    const signal = AbortSignal.timeout(listTimeoutMs)
    const timedOut = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('The engine does not answer.')))
    })
    try {
      const images = await Promise.race([getTarget(region).images.list(signal), timedOut])
      return { images: images.map((image) => present(region, image)) }
    } catch (error) {
      return { region, message: getMessage(error) }
    }
  }

  async function preparePull(actor: Actor, { image, region: requested }: PullImageRequest): Promise<Pull> {
    const { region, provider } = getTarget(requested)
    assertValidImage(image, 'request', provider)
    await transaction(db, async (trx) => {
      await admit(trx, actor, { action: 'pull', imageNames: listImageNames(image, provider) })
      const detail = { image, region }
      recordAuditEvent(trx, { kind: 'image.pull', actor, boxId: null, detail, at: clock.now() })
    })
    return async (signal, onProgress) => {
      try {
        const { workspaceId } = actor
        const pulled = await downloads.pull({ workspaceId, region, image }, signal, onProgress)
        return present(region, pulled)
      } catch (error) {
        signal.throwIfAborted()
        throw toApiError(error, 'image_pull_failed')
      }
    }
  }

  async function remove(actor: Actor, { image, region: requested }: PullImageRequest): Promise<void> {
    const { region, provider, images } = getTarget(requested)
    assertValidImage(image, 'request', provider)
    assertUnused(image, (await listImageUses(db)).filter(isUseOf(image, provider, providers)))
    const isRemoved = await images.remove(image).catch((error: unknown) => {
      throw toApiError(error, 'control_plane_unavailable')
    })
    const resourceId = `images/${region}/${image}`
    if (!isRemoved) {
      if (await wasDeleted(db, actor, resourceId)) return
      throw new ApiError('image_not_found', `Region ${region} has no image ${image}. See GET /images.`)
    }
    await downloads.forget({ region, image })
    await transaction(db, async (trx) => {
      const detail = { image, region }
      const now = clock.now()
      await recordDeletion(trx, actor, resourceId, now)
      recordAuditEvent(trx, { kind: 'image.remove', actor, boxId: null, detail, at: now })
    })
  }

  return { list, preparePull, remove }
}

/** Throws image_in_use. The names of the boxes may be those of other workspaces. */
function assertUnused(image: string, uses: readonly ImageUse[]): void {
  const count = (kind: ImageUse['kind']) =>
    uses.reduce((sum, use) => sum + (use.kind === kind ? use.count : 0), 0)
  const counts = [
    [count('box'), 'box', 'boxes'],
    [count('snapshot'), 'snapshot', 'snapshots'],
  ] as const
  const described = counts.flatMap(([n, one, many]) => (n === 0 ? [] : [`${n} ${n === 1 ? one : many}`]))
  if (described.length === 0) return
  const message = `The image ${image} is used by ${described.join(' and ')}. Delete them first.`
  throw new ApiError('image_in_use', message)
}

const present = (region: Region, { reference, digest, sizeBytes, createdAt }: ImageInfo): Image => ({
  reference,
  region,
  digest,
  sizeBytes,
  createdAt: toTimestampOrNull(createdAt),
})

const getMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** @param code of an error that a retry may fix, such as a lost connection */
const toApiError = (error: unknown, code: 'image_pull_failed' | 'control_plane_unavailable'): ApiError =>
  error instanceof ApiError
    ? error
    : new ApiError(error instanceof ImageError ? error.code : code, getMessage(error), { cause: error })
