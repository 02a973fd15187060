// How long a box may take for a whole answer: one that stops in the middle must not hold a request for ever.
import { ApiError } from '../../shared/errors.ts'

/**
 * Gives `ask` a signal that is aborted with `signal`, and with box_unreachable after `ms`. What `ask` leaves running
 * goes on without the deadline.
 */
export async function withDeadline<T>(
  ms: number,
  signal: AbortSignal,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  // Not AbortSignal.any(): what it makes is freed by finalizers, long after a request has ended.
  const both = new AbortController()
  const abort = () => both.abort(signal.reason)
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  const timer = setTimeout(
    () => both.abort(new ApiError('box_unreachable', 'The box did not answer in time.')),
    ms,
  )
  try {
    return await ask(both.signal)
  } finally {
    clearTimeout(timer)
  }
}
