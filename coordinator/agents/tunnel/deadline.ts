// Bounds the time of a complete agent response, so that an agent that stalls cannot hold a request open.
import { ApiError } from '../../../shared/errors.ts'

export const createTimeoutError = () =>
  new ApiError('box_unreachable', 'The box did not respond in time. Try again.')

/**
 * Calls `work` with a signal that aborts together with `signal`, and with box_unreachable after `ms`. Once `work` has
 * settled, neither aborts it any more: a stream calls this for each of its requests.
 */
export async function withDeadline<T>(
  ms: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  // AbortSignal.any() is not used, because finalizers free its signals long after the request.
  const combined = new AbortController()
  const abort = () => combined.abort(signal?.reason)
  if (signal?.aborted) abort()
  else signal?.addEventListener('abort', abort, { once: true })
  const timer = setTimeout(() => combined.abort(createTimeoutError()), ms)
  try {
    return await work(combined.signal)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}
