// The tiers, with what a box of each has at most.

import type { BillingDetails } from '../../shared/api/billing.ts'
import type { Tier } from '../../shared/tiers.ts'
import { formatPrice } from './billing.ts'
import { formatCount } from './format-count.ts'

type Prices = NonNullable<BillingDetails['prices']>

/** `TIERS` of shared/tiers.ts, from the smallest to the largest. */
export const TIERS: Record<Tier, { cpus: number; memoryGiB: number; diskGb: number }> = {
  nano: { cpus: 1, memoryGiB: 1, diskGb: 10 },
  micro: { cpus: 2, memoryGiB: 2, diskGb: 20 },
  lite: { cpus: 2, memoryGiB: 4, diskGb: 40 },
  flow: { cpus: 4, memoryGiB: 8, diskGb: 80 },
  pro: { cpus: 8, memoryGiB: 16, diskGb: 160 },
  max: { cpus: 16, memoryGiB: 32, diskGb: 320 },
  ultra: { cpus: 32, memoryGiB: 64, diskGb: 640 },
}
const NAMES = Object.keys(TIERS) as Tier[]

export const SMALLEST_TIER: Tier = 'nano'

export const isLargerTier = (tier: Tier, other: Tier): boolean => NAMES.indexOf(tier) > NAMES.indexOf(other)

/** Such as `lite: 2 CPUs, 4 GiB`. */
export function formatTier(tier: Tier): string {
  const { cpus, memoryGiB } = TIERS[tier]
  return `${tier}: ${formatCount(cpus, 'CPU')}, ${memoryGiB} GiB`
}

export const ALL_TIER_OPTIONS = NAMES.map((tier) => ({ value: tier, label: formatTier(tier) }))

/** With what each tier has, and what it costs per hour. The first one is the choice of the coordinator. */
export const listTierCards = (prices: Prices | null) => [
  { value: '', label: 'Default', detail: ['chosen for you'] },
  ...NAMES.map((tier) => {
    const { cpus, memoryGiB, diskGb } = TIERS[tier]
    const price = prices?.tiers.find((other) => other.tier === tier)
    return {
      value: tier,
      label: tier,
      detail: [
        formatCount(cpus, 'CPU'),
        `${memoryGiB} GiB`,
        `${diskGb} GB disk`,
        ...(price === undefined ? [] : [`${formatPrice(price.runningMicrosPerHour)} / h`]),
      ],
    }
  }),
]

/** @param tier that the box gets without a choice; null: the coordinator chooses it */
export const listTierOptions = (tier: Tier | null) => [
  { value: '', label: tier === null ? 'Default' : `Default: ${tier}` },
  ...ALL_TIER_OPTIONS,
]

/** The name and the tier of a box that is forked or restored. */
export const toNewBox = ({ name, tier }: Record<string, string>): { name?: string; tier?: Tier } => ({
  ...(name && { name }),
  ...(tier && { tier: tier as Tier }),
})
