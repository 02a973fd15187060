// The limits of a box in an engine.
import { boundTier, type Capacity, type Tier } from '../../../shared/tiers.ts'
import type { EngineInfo } from './engine-info.ts'

/** The processes and threads of a box. */
const MAX_PROCESSES = 4096
const CPU_PERIOD_US = 100_000

/** The fields of HostConfig, of which an engine without a limit ignores those that it does not have. */
export type Limits = { NanoCpus: number; Memory: number; MemorySwap: number; PidsLimit: number }

/** The memory has no swap: a box that needs more memory is not slowed down. */
export function createLimits(tier: Tier, capacity: Capacity): Limits {
  const { cpus, memoryBytes } = boundTier(tier, capacity)
  return {
    NanoCpus: cpus * 1e9,
    Memory: memoryBytes,
    MemorySwap: memoryBytes,
    PidsLimit: MAX_PROCESSES,
  }
}

/** The limits that the engine enforces: Podman refuses others. */
export function selectLimits(all: Limits, { limits }: EngineInfo): Partial<Limits> {
  const { NanoCpus, Memory, MemorySwap, PidsLimit } = all
  return {
    ...(limits.includes('cpu') && { NanoCpus }),
    ...(limits.includes('memory') && { Memory, MemorySwap }),
    ...(limits.includes('pids') && { PidsLimit }),
  }
}

/** The body of an update with the limits that a tier changes, for Docker. */
export const toDockerUpdate = ({ NanoCpus, Memory, MemorySwap }: Partial<Limits>) => ({
  ...(NanoCpus !== undefined && { NanoCpus }),
  ...(Memory !== undefined && { Memory, MemorySwap }),
})

/** The same as toDockerUpdate() for Podman: the `linux.resources` of the OCI runtime specification. */
export const toPodmanUpdate = ({ NanoCpus, Memory, MemorySwap }: Partial<Limits>) => ({
  ...(NanoCpus !== undefined && {
    cpu: { quota: Math.round((NanoCpus * CPU_PERIOD_US) / 1e9), period: CPU_PERIOD_US },
  }),
  ...(Memory !== undefined && { memory: { limit: Memory, swap: MemorySwap } }),
})
