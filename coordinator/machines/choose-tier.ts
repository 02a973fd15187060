// Chooses the tier of an enrolled machine, which classifies its size. The coordinator enforces no limit on it.
import { TIER_NAMES, TIERS, type Tier } from '../../shared/tiers.ts'

/** The kernel and the firmware reserve a part of the memory: a machine with 8 GiB reports about 7.7 GiB. */
const RESERVED_PART = 0.1

/** The largest tier whose CPUs and memory the machine has; at least the smallest one. */
export function chooseTier({ cpus, memoryBytes }: { cpus: number; memoryBytes: number }): Tier {
  const fits = (tier: Tier) =>
    TIERS[tier].cpus <= cpus && TIERS[tier].memoryBytes * (1 - RESERVED_PART) <= memoryBytes
  return TIER_NAMES.findLast(fits) ?? 'nano'
}
