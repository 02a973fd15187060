// Limits the concurrent provider calls, for each provider alone: an engine that does not answer must not delay the boxes of others.
import pLimit, { type LimitFunction } from 'p-limit'
import type { BoxRow } from '../../db/schema.ts'

/** Returns the limit of the calls to the provider of the box. */
export type MachineLimits = (box: Pick<BoxRow, 'provider'>) => LimitFunction

export function createMachineLimits(maxConcurrentCalls: number): MachineLimits {
  const limits = new Map<string, LimitFunction>()
  return ({ provider }) => {
    const limit = limits.get(provider) ?? pLimit(maxConcurrentCalls)
    limits.set(provider, limit)
    return limit
  }
}
