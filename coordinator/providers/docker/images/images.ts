// The images of an engine.
import type { PullProgress } from '../../../../shared/api/images.ts'
import { hasStatus, ignoreStatus } from '../../engine-http/errors.ts'
import { ImageError, type ImageInfo, type ProviderImages } from '../../provider.ts'
import { SharedDownloads, type StartDownload } from '../../shared-downloads.ts'
import { ENGINE_NAMES, type Engine } from '../engine.ts'
import { type DownloadOptions, downloadImage } from './download-image.ts'
import {
  findReferenceProblem,
  normalizeReference,
  OWN_REPOSITORY_PREFIX,
  parseReference,
  shortenReference,
} from './reference.ts'
import {
  createImageWithoutVolumes,
  getReferenceWithoutVolumes,
  parseReferenceWithoutVolumes,
} from './without-volumes.ts'

/** An image as the engine describes it. */
export type EngineImage = {
  /** `sha256:…` of its configuration. */
  id: string
  /** `sha256:…` of its manifest in the registry; null: it comes from no registry. */
  digest: string | null
  sizeBytes: number
  createdAt: number | null
  layerCount: number
  /** The variables of the image, as NAME=VALUE. */
  environment: readonly string[]
  /** The engine would keep the files of some directories apart: see without-volumes.ts. */
  hasVolumes: boolean
}

export type EngineImages = ProviderImages & {
  /** Returns null when the engine does not have the image. */
  find(normalized: string, signal?: AbortSignal): Promise<EngineImage | null>
  /** Returns the image for boxes, without volumes. Downloads it when the engine does not have it. Throws ImageError. */
  ensure(reference: string, signal?: AbortSignal): Promise<EngineImage>
  /** Removes the images for boxes whose originals another program has removed, except those of existing boxes. */
  removeUnused(): Promise<void>
}

type Inspected = {
  Id: string
  Created?: string
  Size?: number
  RepoDigests?: string[] | null
  RootFS?: { Layers?: string[] | null }
  Config?: { Env?: string[] | null; Volumes?: object | null } | null
}

type Listed = {
  Id: string
  Created?: number
  Size?: number
  RepoTags?: string[] | null
  RepoDigests?: string[] | null
}

export type EngineImagesOptions = { defaultImage: string } & Partial<
  Pick<DownloadOptions, 'env' | 'idleTimeoutMs'>
>

/** Stores with many images, such as those of CI machines. */
const LIST_TIMEOUT_MS = 120_000

export function createEngineImages(
  engine: Engine,
  { defaultImage, ...options }: EngineImagesOptions,
): EngineImages {
  const { http, kind } = engine
  const downloads = new SharedDownloads<ImageInfo, PullProgress>()
  const withoutVolumes = new SharedDownloads<void, never>()

  const pull: ProviderImages['pull'] = (reference, onProgress, signal) => {
    const normalized = normalizeReference(reference)
    const start: StartDownload<ImageInfo, PullProgress> = (...rest) => download(normalized, ...rest)
    return downloads.join(normalized, start, onProgress, signal)
  }

  async function find(normalized: string, signal?: AbortSignal): Promise<EngineImage | null> {
    try {
      const path = `/images/${normalized}/json`
      const image = await http.json<Inspected>({ method: 'GET', path, signal })
      const { digest: wanted } = parseReference(normalized)
      const digests = listDigests(image.RepoDigests, parseRepository(normalized))
      // Podman finds an image by its digest alone. With another name, it comes from a registry that policies may not allow.
      if (wanted !== null && !digests.includes(wanted)) return null
      return {
        id: toId(image.Id),
        digest: wanted ?? digests[0] ?? null,
        sizeBytes: image.Size ?? 0,
        createdAt: toTime(image.Created),
        layerCount: image.RootFS?.Layers?.length ?? 0,
        environment: image.Config?.Env ?? [],
        hasVolumes: Object.keys(image.Config?.Volumes ?? {}).length > 0,
      }
    } catch (error) {
      if (hasStatus(error, 404)) return null
      throw error
    }
  }

  async function download(
    normalized: string,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<ImageInfo> {
    const reference = shortenReference(normalized)
    const progress = await downloadImage(engine, normalized, { ...options, onProgress, signal })
    const image = await find(normalized, signal)
    // The engine ends the response when it is stopped.
    if (image === null) throw new Error(`The download of the image ${reference} was interrupted.`)
    progress.complete()
    onProgress(progress.read())
    return { reference, digest: image.digest, sizeBytes: image.sizeBytes, createdAt: image.createdAt }
  }

  async function removeVolumes(image: EngineImage, signal?: AbortSignal): Promise<EngineImage> {
    const reference = getReferenceWithoutVolumes(image.id)
    if ((await find(reference, signal)) === null)
      await withoutVolumes.join(
        image.id,
        (_, aborted) => createImageWithoutVolumes(engine, image.id, aborted),
        undefined,
        signal,
      )
    const changed = await find(reference, signal)
    if (changed === null) throw new Error('The engine has not loaded the image without its volumes.')
    return { ...changed, digest: image.digest ?? image.id }
  }

  const listAll = (signal?: AbortSignal) =>
    http.json<Listed[]>({ method: 'GET', path: '/images/json', signal, timeoutMs: LIST_TIMEOUT_MS })

  async function list(signal?: AbortSignal): Promise<ImageInfo[]> {
    const images = await listAll(signal)
    return images.flatMap((image) =>
      listReferences(image).map((normalized) => ({
        reference: shortenReference(normalized),
        digest: listDigests(image.RepoDigests, parseRepository(normalized))[0] ?? null,
        sizeBytes: image.Size ?? 0,
        createdAt: image.Created === undefined ? null : image.Created * 1000,
      })),
    )
  }

  return {
    defaultImage,
    findProblem: findReferenceProblem,
    normalize: normalizeReference,
    find,
    list,
    has: async (reference, signal) => (await find(normalizeReference(reference), signal)) !== null,
    pull,

    async ensure(reference, signal) {
      const normalized = normalizeReference(reference)
      let image = await find(normalized, signal)
      if (image === null) {
        await pull(normalized, undefined, signal)
        image = await find(normalized, signal)
      }
      if (image === null) throw new Error(`The image ${reference} was removed after its download.`)
      return image.hasVolumes ? await removeVolumes(image, signal) : image
    },

    async removeUnused() {
      for (const tag of (await listAll()).flatMap(({ RepoTags }) => RepoTags ?? [])) {
        const original = parseReferenceWithoutVolumes(tag)
        if (original !== null && (await find(original)) === null)
          await http.json({ method: 'DELETE', path: `/images/${tag}` }).catch(ignoreStatus(404, 409))
      }
    },

    async remove(reference) {
      const normalized = normalizeReference(reference)
      try {
        const image = await find(normalized)
        if (image === null) return false
        // Podman records a digest also for images that it has built, and puts them into the domain localhost.
        if (image.digest === null || parseReference(normalized).domain === 'localhost')
          throw new ImageError(
            'image_not_downloaded',
            `The image ${reference} comes from no registry, so it could not be downloaded again. The operator can remove it with \`${kind} rmi ${reference}\`.`,
          )
        if (image.hasVolumes)
          await http
            .json({ method: 'DELETE', path: `/images/${getReferenceWithoutVolumes(image.id)}` })
            .catch(ignoreStatus(404))
        await http.json({ method: 'DELETE', path: `/images/${normalized}` })
        return true
      } catch (error) {
        // Podman knows the digest of an image that was downloaded by its tag, but not as a name.
        const isMissing =
          hasStatus(error, 404) || (hasStatus(error, 500) && /tag not known/.test(error.reason))
        if (isMissing) return false
        if (!hasStatus(error, 409)) throw error
        throw new ImageError(
          'image_in_use',
          `A container of ${ENGINE_NAMES[kind]} uses the image ${reference}. Delete its box first.`,
          { cause: error },
        )
      }
    },
  }
}

/** The normalized names of an image with which requests can use it. */
function listReferences({ RepoTags, RepoDigests }: Listed): string[] {
  const tags = (RepoTags ?? []).filter((tag) => !tag.includes('<none>'))
  // An image that was downloaded by its digest has no tag.
  const names = tags.length > 0 ? tags : (RepoDigests ?? []).filter((name) => !name.includes('<none>'))
  const valid = names.filter(
    (name) => !name.startsWith(OWN_REPOSITORY_PREFIX) && findReferenceProblem(name) === null,
  )
  return [...new Set(valid.map(normalizeReference))]
}

const parseRepository = (normalized: string): string => {
  const { domain, path } = parseReference(normalized)
  return `${domain}/${path}`
}

/** The digests that the image has in the repository. */
function listDigests(names: readonly string[] | null | undefined, repository: string): string[] {
  return (names ?? []).flatMap((name) => {
    if (findReferenceProblem(name) !== null) return []
    const { domain, path, digest } = parseReference(name)
    return `${domain}/${path}` === repository && digest !== null ? [digest] : []
  })
}

const toId = (id: string): string => (id.startsWith('sha256:') ? id : `sha256:${id}`)

function toTime(text: string | undefined): number | null {
  const time = Date.parse(text ?? '')
  return Number.isNaN(time) ? null : time
}
