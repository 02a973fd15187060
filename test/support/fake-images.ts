// The images of a fake engine: a registry whose downloads the test controls, and what the engine has downloaded.

import {
  ImageError,
  type ImageInfo,
  type Provider,
  type ProviderImages,
} from '../../coordinator/providers/provider.ts'
import { createProviders, type Providers } from '../../coordinator/providers/regions.ts'
import type { PullProgress } from '../../shared/api/images.ts'
import { REGIONS, type Region } from '../../shared/tiers.ts'
import { FakeInfrastructure } from './fake-infrastructure.ts'

type Download = {
  listeners: Set<(progress: PullProgress) => void>
  waiters: number
  controller: AbortController
  result: Promise<ImageInfo>
}

export class FakeImages implements ProviderImages {
  readonly defaultImage: string
  /** The full names of the images in the engine. */
  readonly downloaded = new Map<string, ImageInfo>()
  /** The full names of the images in the registry. */
  readonly registry = new Set<string>()
  /** Runs before the list and the removal of images, such as to fail like a stopped engine. */
  beforeCall: () => void | Promise<void> = () => undefined
  /** Downloads an image. It rejects when the signal aborts. Default: the image has one layer. */
  download: (
    reference: string,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ) => Promise<void> = async (_reference, onProgress) =>
    onProgress({ layers: [{ id: 'layer', status: 'complete', currentBytes: 10, totalBytes: 10 }] })
  readonly #downloads = new Map<string, Download>()

  constructor(defaultImage = 'debian:12') {
    this.defaultImage = defaultImage
    this.registry.add(this.normalize(defaultImage))
  }

  /** Docker refuses upper case in names of repositories. */
  findProblem(reference: string): string | null {
    return /[A-Z]/.test(reference) ? 'must be in lower case' : null
  }

  normalize(reference: string): string {
    const path = reference.includes('/') ? reference : `docker.io/library/${reference}`
    return /:[^/]*$/.test(path) ? path : `${path}:latest`
  }

  async list(): Promise<ImageInfo[]> {
    await this.beforeCall()
    return [...this.downloaded.values()]
  }

  has = async (reference: string): Promise<boolean> => this.downloaded.has(this.normalize(reference))

  async pull(
    reference: string,
    onProgress: (progress: PullProgress) => void = () => undefined,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<ImageInfo> {
    const name = this.normalize(reference)
    const download = this.#downloads.get(name) ?? this.#start(name)
    download.listeners.add(onProgress)
    download.waiters++
    const aborted = Promise.withResolvers<never>()
    const onAbort = () => {
      if (--download.waiters === 0) download.controller.abort(signal.reason)
      aborted.reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
    try {
      return await Promise.race([download.result, aborted.promise])
    } finally {
      signal.removeEventListener('abort', onAbort)
      download.listeners.delete(onProgress)
    }
  }

  async remove(reference: string): Promise<boolean> {
    await this.beforeCall()
    const name = this.normalize(reference)
    if (this.downloaded.get(name)?.digest === null)
      throw new ImageError('image_not_downloaded', `The image ${reference} comes from no registry.`)
    return this.downloaded.delete(name)
  }

  #start(name: string): Download {
    const listeners: Download['listeners'] = new Set()
    const controller = new AbortController()
    const result = this.#run(name, listeners, controller.signal).finally(() => this.#downloads.delete(name))
    result.catch(() => undefined)
    const download = { listeners, waiters: 0, controller, result }
    this.#downloads.set(name, download)
    return download
  }

  async #run(name: string, listeners: Download['listeners'], signal: AbortSignal): Promise<ImageInfo> {
    if (!this.registry.has(name)) throw new ImageError('image_not_found', `There is no image ${name}.`)
    const onProgress = (progress: PullProgress) => {
      for (const listener of listeners) listener(progress)
    }
    await this.download(name, onProgress, signal)
    const image: ImageInfo = { reference: name, digest: `sha256:${name.length}`, sizeBytes: 10, createdAt: 0 }
    this.downloaded.set(name, image)
    return image
  }
}

/** The provider as one of an engine, which downloads the image of a new machine. */
export function withImages(provider: Provider, images: FakeImages, name = 'docker'): Provider {
  return {
    ...provider,
    name,
    archiveFormat: 'oci',
    hasRoot: true,
    canFreeze: true,
    images,
    async create(spec, signal) {
      const image = spec.image ?? images.defaultImage
      const existing = images.downloaded.get(images.normalize(image))
      const { digest } = existing ?? (await images.pull(image, undefined, signal))
      return { ...(await provider.create(spec, signal)), imageDigest: digest }
    },
  }
}

/** The provider in all regions but one, which has images. */
export function serveImagesInOneRegion(infra: FakeInfrastructure, region: Region = 'us-east-1'): Providers {
  const engine = withImages(new FakeInfrastructure(infra).provider, new FakeImages())
  return createProviders(new Map(REGIONS.map((each) => [each, each === region ? engine : infra.provider])))
}
