// The HTTP client of Podman, which repairs its storage: a kill of Podman while it creates an image leaves one without a manifest.
// No name leads to it, but Podman then refuses to read other images, to list them, and to remove them.
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { EngineAddress } from '../engine-http/address.ts'
import { EngineHttp, type EngineRequest, type EngineResponse } from '../engine-http/client.ts'
import { hasStatus, ignoreStatus } from '../engine-http/errors.ts'
import { ENGINE_NAMES, type Engine } from './engine.ts'

export type PodmanHttpOptions = {
  log: Engine['log']
  /** An image that another call creates now has no manifest either, for a moment. Default: 2 s. */
  graceMs?: number
}

export class PodmanHttp extends EngineHttp {
  readonly #log: Engine['log']
  readonly #graceMs: number

  constructor(address: EngineAddress, { log, graceMs = 2_000 }: PodmanHttpOptions) {
    super(ENGINE_NAMES.podman, address)
    this.#log = log
    this.#graceMs = graceMs
  }

  override json<T = unknown>(request: EngineRequest): Promise<T> {
    return this.#repeat(request, () => super.json<T>(request))
  }

  override stream(request: EngineRequest): Promise<EngineResponse> {
    return this.#repeat(request, () => super.stream(request))
  }

  /** Repeats a call that Podman has refused because of damaged images, after their removal. */
  async #repeat<T>({ content, signal }: EngineRequest, call: () => Promise<T>): Promise<T> {
    const found = new Set<string>()
    const removed = new Set<string>()
    for (;;) {
      try {
        return await call()
      } catch (error) {
        const imageId = findDamagedImage(error)
        // A stream can be sent once: its caller begins again.
        if (imageId === null || removed.has(imageId) || content instanceof Readable) throw error
        if (found.has(imageId)) {
          this.#log.warn({ err: error, imageId }, 'removing an image without a manifest')
          await this.#remove(imageId)
          removed.add(imageId)
        } else {
          found.add(imageId)
          await delay(this.#graceMs, undefined, signal && { signal })
        }
      }
    }
  }

  async #remove(imageId: string): Promise<void> {
    await super
      .json({ method: 'DELETE', path: `/images/sha256:${imageId}` })
      .catch(ignoreStatus(404, 409, 500))
  }
}

/** Returns the id of the image that has no manifest; null: the error has another cause. */
function findDamagedImage(error: unknown): string | null {
  if (!hasStatus(error, 500)) return null
  return /item named "manifest" for image with ID "([0-9a-f]{64})"/.exec(error.reason)?.[1] ?? null
}
