// Tiers and regions (spec §2.2). The spec defines only the names; this project defines the resource limits.

const GiB = 1024 ** 3

/** The resource limits of each tier. A provider reports which of them it enforces. */
export const TIERS = {
  nano: { cpus: 1, memoryBytes: 1 * GiB, diskGb: 10 },
  micro: { cpus: 2, memoryBytes: 2 * GiB, diskGb: 20 },
  lite: { cpus: 2, memoryBytes: 4 * GiB, diskGb: 40 },
  flow: { cpus: 4, memoryBytes: 8 * GiB, diskGb: 80 },
  pro: { cpus: 8, memoryBytes: 16 * GiB, diskGb: 160 },
  max: { cpus: 16, memoryBytes: 32 * GiB, diskGb: 320 },
  ultra: { cpus: 32, memoryBytes: 64 * GiB, diskGb: 640 },
} as const

export type Tier = keyof typeof TIERS

/** How many files and directories a box may have: one for about 16 KiB of its disk, as ext4 has by default. */
export const tierInodes = (tier: Tier): number => TIERS[tier].diskGb * 60_000

export const TIER_NAMES = ['nano', 'micro', 'lite', 'flow', 'pro', 'max', 'ultra'] as const satisfies Tier[]

export const isLargerTier = (tier: Tier, other: Tier): boolean =>
  TIER_NAMES.indexOf(tier) > TIER_NAMES.indexOf(other)

/** The resources of a machine that runs boxes, or of a box. */
export type Capacity = { cpus: number; memoryBytes: number; diskBytes: number }

/**
 * What a box of the tier has on a machine with this capacity, which its boxes share: the tier can be larger than the machine.
 * @param capacity undefined: each box has a machine of its own, with the size of its tier
 */
export function boundTier(tier: Tier, capacity?: Capacity): Capacity {
  const { cpus, memoryBytes, diskGb } = TIERS[tier]
  const size = { cpus, memoryBytes, diskBytes: diskGb * 1000 ** 3 }
  if (capacity === undefined) return size
  return {
    cpus: Math.min(size.cpus, capacity.cpus),
    memoryBytes: Math.min(size.memoryBytes, capacity.memoryBytes),
    diskBytes: Math.min(size.diskBytes, capacity.diskBytes),
  }
}

/** The tier of a box that is created without one. The spec leaves the choice to the service. */
export const DEFAULT_TIER: Tier = 'lite'

export const REGIONS = ['us-west-2', 'us-west-1', 'us-east-1', 'us-east-2', 'eu-central-1'] as const
export type Region = (typeof REGIONS)[number]
export const DEFAULT_REGION: Region = 'us-west-2'
