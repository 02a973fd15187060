// The downloads of images that this tab has started. They continue while other pages are shown.
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { PullImageRequest, PullProgress } from '../../shared/api/images.ts'
import { toBoxwoodError } from '../api/errors.ts'
import type { PullImage } from '../api/pull-image.ts'
import { formatBytes } from './sizes.ts'

export type ImagePull = {
  readonly id: number
  readonly request: PullImageRequest
  readonly state: 'running' | 'done' | 'failed' | 'canceled'
  readonly layers: PullProgress['layers']
  readonly error: BoxwoodError | null
}

export type ImagePulls = {
  start(request: PullImageRequest): void
  cancel(id: number): void
  /** Removes the downloads that have ended from the list. */
  clear(): void
}

/** @param onChange gets all downloads, the newest first */
export function createImagePulls(
  pull: PullImage,
  onChange: (pulls: readonly ImagePull[]) => void,
): ImagePulls {
  const controllers = new Map<number, AbortController>()
  let list: ImagePull[] = []
  let lastId = 0

  function change(id: number, fields: Partial<ImagePull>): void {
    list = list.map((item) => (item.id === id ? { ...item, ...fields } : item))
    onChange(list)
  }

  async function run(id: number, request: PullImageRequest, { signal }: AbortController): Promise<void> {
    try {
      await pull(request, { signal, onProgress: ({ layers }) => change(id, { layers }) })
      change(id, { state: 'done' })
    } catch (reason) {
      if (signal.aborted) change(id, { state: 'canceled' })
      else change(id, { state: 'failed', error: toBoxwoodError(reason) })
    } finally {
      controllers.delete(id)
    }
  }

  return {
    start(request) {
      lastId += 1
      const controller = new AbortController()
      controllers.set(lastId, controller)
      list = [{ id: lastId, request, state: 'running', layers: [], error: null }, ...list]
      onChange(list)
      void run(lastId, request, controller)
    },
    cancel: (id) => controllers.get(id)?.abort(),
    clear() {
      list = list.filter(({ state }) => state === 'running')
      onChange(list)
    },
  }
}

export type ShownProgress = { text: string; value: number; max: number }

/** Layers whose size is not known count when they are complete. */
export function summarizeLayers(layers: ImagePull['layers']): ShownProgress | null {
  if (layers.length === 0) return null
  const complete = layers.filter(({ status }) => status === 'complete').length
  const max = layers.reduce((sum, { totalBytes }) => sum + (totalBytes ?? 0), 0)
  const value = layers.reduce(
    (sum, { status, currentBytes, totalBytes }) =>
      sum +
      (totalBytes === null ? 0 : status === 'complete' ? totalBytes : Math.min(currentBytes, totalBytes)),
    0,
  )
  return {
    text: `${complete} of ${layers.length} layers${max > 0 ? `, ${formatBytes(value)} of ${formatBytes(max)}` : ''}`,
    ...(max > 0 ? { value, max } : { value: complete, max: layers.length }),
  }
}
