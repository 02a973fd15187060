// The edge's limits (spec §8): requests per second and concurrent requests, per API key and per box; streams per API key.
import { type Clock, systemClock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { createMemoryStore, type LimitStore, type Slot } from './limit-store.ts'

export type EdgeLimits = {
  /** Per API key and per box. */
  requestsPerSecond: number
  /** Concurrent requests per API key and per box. */
  concurrency: number
  /** Concurrent streams per API key. Each also counts as a concurrent request. */
  streams: number
}

export type EdgeLimiter = {
  /**
   * Acquires a slot of the API key and of the box. Returns the release function, to be called when the response is closed.
   * Rejects with rate_limited and Retry-After in seconds; then nothing is acquired.
   *
   * Retry-After: over the rate, when the next request is allowed. Over the streams, when the oldest one expires; it may
   * end earlier. Over the concurrent requests, 1 second: their end is unknown.
   */
  acquire(keyId: string, boxId: string, options?: { isStream?: boolean }): Promise<() => void>
  /** Acquired slots, for tests and metrics. */
  acquiredCount(): number
}

const CONCURRENCY_RETRY_MS = 1000
/** Added to a stream's lifetime until its slot is released. */
const STREAM_CLOSE_MS = 1000

function rejectLimited(retryAfterMs: number, problem: string, advice = 'Try again'): never {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000))
  throw new ApiError('rate_limited', `${problem} ${advice} in ${seconds} s.`, {
    headers: { 'retry-after': String(seconds) },
  })
}

export function createEdgeLimiter(
  limits: EdgeLimits,
  clock: Clock = systemClock,
  store: LimitStore = createMemoryStore(limits.requestsPerSecond, clock),
): EdgeLimiter {
  const { requestsPerSecond, concurrency, streams } = limits
  const msUntilExpiry = (since: number) => since + LIMITS.streamReconnectMs + STREAM_CLOSE_MS - clock.now()

  return {
    async acquire(keyId, boxId, { isStream = false } = {}) {
      const key: Slot = { key: `key:${keyId}`, limit: concurrency }
      const box: Slot = { key: `box:${boxId}`, limit: concurrency }
      const stream: Slot = { key: `streams:${keyId}`, limit: streams }
      const subjectOf = (slot: Slot) => (slot === box ? 'This box' : 'This API key')
      for (const slot of [key, box]) {
        const waitMs = await store.countRequest(slot.key)
        if (waitMs > 0)
          rejectLimited(
            waitMs,
            `${subjectOf(slot)} has reached the limit of ${requestsPerSecond} requests per second.`,
          )
      }
      const acquisition = await store.acquire(isStream ? [stream, key, box] : [key, box])
      if ('release' in acquisition) return acquisition.release
      const { full, since } = acquisition
      if (full === stream)
        rejectLimited(
          msUntilExpiry(since),
          `This API key has reached the limit of ${streams} concurrent streams.`,
          'Close a stream, or try again',
        )
      return rejectLimited(
        CONCURRENCY_RETRY_MS,
        `${subjectOf(full)} has reached the limit of ${concurrency} concurrent requests.`,
      )
    },
    acquiredCount: store.acquiredCount,
  }
}
