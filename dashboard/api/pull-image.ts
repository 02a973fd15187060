// Downloads an image to the engine of a region, with its progress as server-sent events.
import type { Calls } from '../../client/http/calls.ts'
import { createError, toLostError } from '../../client/http/errors.ts'
import { readEvents } from '../../client/http/events.ts'
import type { Image, PullImageRequest, PullProgress } from '../../shared/api/images.ts'

export type PullOptions = {
  /** The download ends when it is aborted, unless another request waits for the same image. */
  signal: AbortSignal
  onProgress(progress: PullProgress): void
}

/** Rejects with a BoxwoodError, and with the reason of an aborted signal. */
export type PullImage = (request: PullImageRequest, options: PullOptions) => Promise<Image>

export const createPullImage =
  (calls: Calls): PullImage =>
  async (body, { signal, onProgress }) => {
    const headers = { accept: 'text/event-stream' }
    const response = await calls.open('POST', '/api/v1/images', { body, isSlow: true }, { headers, signal })
    for await (const { event, data } of readEvents(response, signal)) {
      const fields = JSON.parse(data)
      if (event === 'progress') onProgress(fields)
      else if (event === 'done') return fields.image
      else if (event === 'error') throw createError({ ...fields, status: response.status })
    }
    throw toLostError()
  }
