// The plans: what a workspace may have. A workspace on free credit alone has the plan `free`, until its first payment.
import { LIMITS } from '../../shared/limits.ts'
import { TIER_NAMES, type Tier } from '../../shared/tiers.ts'

export type Plan = {
  /** Live boxes. */
  boxes: number
  /** Snapshots, without the copies that forks make. */
  snapshots: number
  secrets: number
  /** Open terminals. */
  terminals: number
  tiers: readonly Tier[]
  /** Whether ports may be shared by links that need no membership. */
  hasOpenLinks: boolean
  /** The autoPauseMin of a box that is created without one; null: none. */
  defaultAutoPauseMin: number | null
  /** The tier of a box that is created without one, if the balance runs it comfortably. */
  defaultTier: Tier
}

/** Spec §4.3, §8: free credit starts one box, of the tiers nano to flow, which pauses after 120 idle minutes. */
export const PLANS = {
  free: {
    boxes: 1,
    snapshots: 5,
    secrets: 10,
    terminals: 4,
    tiers: ['nano', 'micro', 'lite', 'flow'],
    hasOpenLinks: false,
    defaultAutoPauseMin: 120,
    defaultTier: 'micro',
  },
  paid: {
    boxes: 1000,
    snapshots: 1000,
    secrets: LIMITS.secrets,
    terminals: 64,
    tiers: TIER_NAMES,
    hasOpenLinks: true,
    defaultAutoPauseMin: null,
    defaultTier: 'lite',
  },
} as const satisfies Record<string, Plan>
