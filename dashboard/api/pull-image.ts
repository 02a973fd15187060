// Downloads an image to the engine of a region, with its progress as server-sent events.
import type { Image, PullImageRequest, PullProgress } from '../../shared/api/images.ts'
import { createResponseError, RequestError } from './errors.ts'
import { readEvents } from './read-events.ts'
import { type Fetch, fetchSuccessful } from './send.ts'

export type PullOptions = {
  /** The download ends when it is aborted, unless another request waits for the same image. */
  signal: AbortSignal
  onProgress(progress: PullProgress): void
}

/** Rejects with RequestError, and with the reason of an aborted signal. */
export type PullImage = (request: PullImageRequest, options: PullOptions) => Promise<Image>

const LOST = new RequestError('no_response', 'The connection to the download is lost.', 0)

/** @param root the URL of the API, with a slash at its end */
export const createPullImage =
  (fetch: Fetch, root: string): PullImage =>
  async (request, { signal, onProgress }) => {
    const { body, status, headers } = await fetchSuccessful(fetch, new URL('images', root), {
      method: 'POST',
      headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
      body: JSON.stringify(request),
      signal,
    })
    if (body === null) throw createResponseError(undefined, status, headers.get('x-request-id'))
    let result: Image | RequestError = LOST
    await readEvents(body, ({ event, data }) => {
      const fields = JSON.parse(data)
      if (event === 'progress') onProgress(fields)
      else if (event === 'done') result = fields.image as Image
      else if (event === 'error') result = new RequestError(fields.code, fields.message, status)
      return result !== LOST
    }).catch(() => undefined)
    signal.throwIfAborted()
    if (result instanceof RequestError) throw result
    return result
  }
