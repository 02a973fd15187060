// The edge's limits (spec §8): requests a second and at once, each per token and per box, and streams per token.
import { type Clock, systemClock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { createMemoryStore, type LimitStore, type Slot } from './limit-store.ts'

export type EdgeLimits = {
  /** Requests a second, for each token and for each box. */
  requestsPerSecond: number
  /** Requests at once, for each token and for each box. */
  concurrency: number
  /** Streams at once, for each token. Each is one of its requests at once, too. */
  streams: number
}

export type EdgeLimiter = {
  /**
   * Takes a slot of the token and of the box; give it back when the answer has ended.
   * Rejects with rate_limited and a Retry-After in whole seconds; then nothing was taken.
   *
   * What Retry-After says: over the rate, when a request will be taken, if no other comes before it. Over the streams,
   * when the oldest of them has to end at the latest; one may end sooner. Over the requests at once, a second: nobody
   * knows when one of them will end.
   */
  acquire(tokenId: string, boxId: string, options?: { stream?: boolean }): Promise<() => void>
  /** Slots held now, for tests and metrics. */
  acquiredCount(): number
}

const SOON_MS = 1000
/** What an ended stream may need to go. */
const GOING_MS = 1000

function refuse(retryAfterMs: number, message: string): never {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000))
  throw new ApiError('rate_limited', message, { headers: { 'retry-after': String(seconds) } })
}

export function createEdgeLimiter(
  limits: EdgeLimits,
  clock: Clock = systemClock,
  store: LimitStore = createMemoryStore(limits.requestsPerSecond, clock),
): EdgeLimiter {
  const { requestsPerSecond, concurrency, streams } = limits
  const streamEnds = (since: number) => since + LIMITS.streamReconnectMs + GOING_MS - clock.now()

  return {
    async acquire(tokenId, boxId, { stream = false } = {}) {
      const token: Slot = { key: `token:${tokenId}`, limit: concurrency }
      const box: Slot = { key: `box:${boxId}`, limit: concurrency }
      const streamPlace: Slot = { key: `streams:${tokenId}`, limit: streams }
      const whose = (place: Slot) => (place === box ? 'for this box' : 'with this key')
      for (const place of [token, box]) {
        const waitMs = await store.countRequest(place.key)
        if (waitMs > 0) refuse(waitMs, `More than ${requestsPerSecond} requests a second ${whose(place)}.`)
      }
      const taken = await store.acquire(stream ? [streamPlace, token, box] : [token, box])
      if ('release' in taken) return taken.release
      const { full, since } = taken
      if (full === streamPlace)
        refuse(streamEnds(since), `${streams} streams are open with this key already.`)
      return refuse(SOON_MS, `${concurrency} requests are under way ${whose(full)} already.`)
    },
    acquiredCount: store.acquiredCount,
  }
}
