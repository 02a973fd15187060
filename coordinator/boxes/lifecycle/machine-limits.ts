// Limits the concurrent provider calls, for each provider alone: an engine that does not answer must not delay the boxes of others.
// The boxes of a workspace do not delay those of others either.
import { createFairQueue, type FairQueue, type RunLimited } from '../../base/fair-queue.ts'
import type { BoxRow } from '../../db/schema.ts'

/** Returns the limit of the calls to the provider of the box. */
export type MachineLimits = (box: Pick<BoxRow, 'provider' | 'workspace_id'>) => RunLimited

export function createMachineLimits(maxConcurrentCalls: number): MachineLimits {
  const queues = new Map<string, FairQueue>()
  return ({ provider, workspace_id: workspaceId }) => {
    const queue = queues.get(provider) ?? createFairQueue(maxConcurrentCalls)
    queues.set(provider, queue)
    return (fn) => queue.run(workspaceId, fn)
  }
}
