// The resources of this machine, which its boxes share.
import { statfs } from 'node:fs/promises'
import { availableParallelism, totalmem } from 'node:os'
import type { Capacity } from '../../../shared/tiers.ts'

/** @param boxesDir on the disk of the boxes */
export async function readCapacity(boxesDir: string): Promise<Capacity> {
  const { bsize, blocks } = await statfs(boxesDir)
  // A container can have less memory than its machine. Without a limit, this value is 0 or larger than the memory.
  const limit = process.constrainedMemory() || Number.POSITIVE_INFINITY
  return {
    cpus: availableParallelism(),
    memoryBytes: Math.min(totalmem(), limit),
    diskBytes: bsize * blocks,
  }
}
