// The tiers, with what a box of each has at most.
import type { Tier } from '../../shared/tiers.ts'

export const TIERS: Record<Tier, string> = {
  nano: 'nano: 1 CPU, 1 GiB',
  micro: 'micro: 2 CPUs, 2 GiB',
  lite: 'lite: 2 CPUs, 4 GiB',
  flow: 'flow: 4 CPUs, 8 GiB',
  pro: 'pro: 8 CPUs, 16 GiB',
  max: 'max: 16 CPUs, 32 GiB',
  ultra: 'ultra: 32 CPUs, 64 GiB',
}

const OPTIONS = Object.entries(TIERS).map(([value, label]) => ({ value, label }))
export const TIER_OPTIONS = [{ value: '', label: 'Default' }, ...OPTIONS]
export const ALL_TIER_OPTIONS = OPTIONS

/** The tiers up to the largest one that the policy memberMaxTier allows; null: all. */
export const listTierOptions = (max: Tier | null) =>
  max === null
    ? TIER_OPTIONS
    : TIER_OPTIONS.slice(0, TIER_OPTIONS.findIndex(({ value }) => value === max) + 1)
