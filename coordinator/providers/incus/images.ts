// The images of an Incus server: those with a local alias, and those of the image server.
import type { PullProgress } from '../../../shared/api/images.ts'
import { ImageError, type ImageInfo, type ProviderImages } from '../provider.ts'
import { SharedDownloads, type StartDownload } from '../shared-downloads.ts'
import type { Image, Operation } from './api.ts'
import { type IncusClient, IncusOperationError, readReason } from './client.ts'

/** The public server with images of most distributions, which the command `incus` names `images:`. */
export const IMAGE_SERVER = 'https://images.linuxcontainers.org'

const REMOTE = 'images:'
const REFERENCE = /^[A-Za-z0-9][A-Za-z0-9._:/+-]{0,254}$/

export type IncusImages = ProviderImages & {
  /** Returns the fingerprint of the image, which is downloaded when it is missing. Throws ImageError. */
  ensure(reference: string, signal?: AbortSignal): Promise<string>
}

export type IncusImagesOptions = {
  client: IncusClient
  defaultImage: string
  /** A simplestreams server. Default: IMAGE_SERVER. */
  server?: string
}

/** `debian:12`, `debian/12` and `images:debian/12` are the same image. A local alias may have any name. */
export function normalizeReference(reference: string): string {
  const name = reference.startsWith(REMOTE) ? reference.slice(REMOTE.length) : reference
  return name.replace(/:/, '/')
}

export function createIncusImages({
  client,
  defaultImage,
  server = IMAGE_SERVER,
}: IncusImagesOptions): IncusImages {
  const pulls = new SharedDownloads<ImageInfo, PullProgress>()

  async function find(reference: string): Promise<Image | null> {
    for (const name of new Set([reference, normalizeReference(reference)])) {
      const alias = await client.find<{ target: string }>(`/images/aliases/${encodeURIComponent(name)}`)
      if (alias !== null) return await client.find<Image>(`/images/${alias.target}`)
    }
    return null
  }

  async function download(
    reference: string,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<ImageInfo> {
    const name = normalizeReference(reference)
    const existing = await find(reference)
    // The operator has imported the image: there is no newer one.
    if (existing !== null && !hasSource(existing)) return toInfo(existing, reference)
    const source = { type: 'image', mode: 'pull', protocol: 'simplestreams', server, alias: name }
    const onOperation = (operation: Operation) => {
      const progress = readProgress(operation)
      if (progress !== null) onProgress(progress)
    }
    const json = { source: { ...source, image_type: 'container' }, auto_update: false }
    const { fingerprint } = await client
      .call('POST', '/images', { json, signal, onProgress: onOperation })
      .catch((error: unknown) => {
        throw describeFailure(error, reference)
      })
    await setAlias(name, String(fingerprint))
    const image = await client.get<Image>(`/images/${fingerprint}`)
    onProgress(completed(image.size))
    return toInfo(image, name)
  }

  async function setAlias(name: string, target: string): Promise<void> {
    const path = `/images/aliases/${encodeURIComponent(name)}`
    if ((await client.find(path)) !== null) await client.call('PUT', path, { json: { target } })
    else await client.call('POST', '/images/aliases', { json: { name, target } })
  }

  const images: IncusImages = {
    defaultImage,
    findProblem(reference) {
      if (!REFERENCE.test(reference) || reference.includes('@'))
        return 'must be the name of an image, such as debian:12, debian/12 or images:debian/12'
      return normalizeReference(reference).includes(':') ? 'must have one colon at most after images:' : null
    },
    normalize: normalizeReference,

    async list(signal) {
      const all = await client.get<Image[]>('/images', { recursion: 1 }, signal)
      return all
        .filter(({ type }) => type === 'container')
        .flatMap((image) => image.aliases.map(({ name }) => toInfo(image, name)))
    },

    has: async (reference) => (await find(reference)) !== null,

    pull(reference, onProgress, signal) {
      const start: StartDownload<ImageInfo, PullProgress> = (...rest) => download(reference, ...rest)
      return pulls.join(normalizeReference(reference), start, onProgress, signal)
    },

    async remove(reference) {
      const image = await find(reference)
      if (image === null) return false
      if (!hasSource(image))
        throw new ImageError(
          'image_not_downloaded',
          `The image ${reference} comes from no image server, so it could not be downloaded again. The operator can remove it with \`incus image delete ${reference}\`.`,
        )
      const isOther = ({ name }: { name: string }) =>
        name !== reference && name !== normalizeReference(reference)
      if (image.aliases.some(isOther)) {
        for (const { name } of image.aliases.filter((alias) => !isOther(alias)))
          await client.call('DELETE', `/images/aliases/${encodeURIComponent(name)}`)
      } else await client.call('DELETE', `/images/${image.fingerprint}`)
      return true
    },

    async ensure(reference, signal) {
      const image = await find(reference)
      if (image === null)
        return (await images.pull(reference, undefined, signal)).digest?.slice(DIGEST.length) ?? ''
      if (image.type !== 'container')
        throw new ImageError(
          'image_unusable',
          `The image ${reference} is of a ${image.type}. Choose an image of a container.`,
        )
      return image.fingerprint
    },
  }
  return images
}

/** Whether the image server may have the image. */
const hasSource = (image: Image): boolean => image.update_source?.server !== undefined

const DIGEST = 'sha256:'

const toInfo = (image: Image, reference: string): ImageInfo => ({
  reference,
  digest: DIGEST + image.fingerprint,
  sizeBytes: image.size,
  createdAt: Date.parse(image.created_at) > 0 ? Date.parse(image.created_at) : Date.parse(image.uploaded_at),
})

/** A server that answers and does not have the image: a retry does not help. */
function describeFailure(error: unknown, reference: string): unknown {
  const reason = readReason(error)
  if (/not found|couldn't be found|could not be found|doesn't exist/i.test(reason))
    return new ImageError('image_not_found', `There is no image ${reference}: ${reason}.`, { cause: error })
  if (error instanceof IncusOperationError && /forbidden|unauthorized|signature|certificate/i.test(reason))
    return new ImageError('image_pull_failed', `The image ${reference} cannot be downloaded: ${reason}.`, {
      cause: error,
    })
  return error
}

/** Incus reports the progress of a part of the image as a number or in percent. */
function readProgress({ metadata }: Operation): PullProgress | null {
  const progress = metadata?.progress as { stage?: string; percent?: string; processed?: string } | undefined
  if (progress === undefined) return null
  const isUnpacking = progress.stage?.includes('unpack') ?? false
  const processed = Number(progress.processed ?? 0)
  return {
    layers: [
      {
        id: 'image',
        status: isUnpacking ? 'unpacking' : 'downloading',
        currentBytes: Number.isFinite(processed) ? processed : 0,
        totalBytes: null,
      },
    ],
  }
}

const completed = (size: number): PullProgress => ({
  layers: [{ id: 'image', status: 'complete', currentBytes: size, totalBytes: size }],
})
