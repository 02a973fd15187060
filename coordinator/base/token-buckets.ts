// Token buckets, one per box or client: limits of what one of them may send, so that it does not slow the others.
import type { Clock } from '../../shared/clock.ts'

export type TokenBuckets = {
  /** Takes one token. Returns 0, or takes none and returns the milliseconds until there is one. */
  take(key: string): number
  /** Takes the tokens in any case. Returns 0, or the milliseconds until the missing tokens are refilled. */
  spend(key: string, tokens: number): number
  /** Adds tokens, up to the capacity. */
  credit(key: string, tokens: number): void
}

/**
 * @param options.capacity tokens of a full bucket; at most as many can be missing
 * @param options.perSecond tokens that are refilled per second
 */
export function createTokenBuckets(
  clock: Clock,
  { capacity, perSecond }: { capacity: number; perSecond: number },
): TokenBuckets {
  const buckets = new Map<string, { tokens: number; at: number }>()
  const msPerToken = 1000 / perSecond
  /** After this time any bucket is full. */
  const refillMs = 2 * capacity * msPerToken

  /** Changes the refilled bucket, and returns its new content. */
  function update(key: string, change: (tokens: number) => number): number {
    const now = clock.now()
    const bucket = buckets.get(key) ?? { tokens: capacity, at: now }
    const refilled = Math.min(capacity, bucket.tokens + Math.max(0, now - bucket.at) / msPerToken)
    const tokens = Math.min(capacity, Math.max(-capacity, change(refilled)))
    // Delete and set: keeps the map ordered by last use, so that the loop below finds full buckets first.
    buckets.delete(key)
    buckets.set(key, { tokens, at: now })
    for (const [oldest, { at }] of buckets) {
      if (now - at < refillMs) break
      buckets.delete(oldest)
    }
    return tokens
  }

  return {
    take(key) {
      let missing = 0
      update(key, (tokens) => {
        missing = Math.max(0, 1 - tokens)
        return missing > 0 ? tokens : tokens - 1
      })
      return Math.ceil(missing * msPerToken)
    },
    spend: (key, cost) => Math.ceil(Math.max(0, -update(key, (tokens) => tokens - cost)) * msPerToken),
    credit: (key, gain) => void update(key, (tokens) => tokens + gain),
  }
}
