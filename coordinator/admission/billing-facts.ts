// The facts of billing by which a request is admitted.
import type { Tier } from '../../shared/tiers.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'

/** Amounts are integer micro-dollars. */
export type BillingFacts = {
  balanceMicros: number
  /** What the boxes and snapshots of the workspace cost now. */
  burnMicrosPerHour: number
  /** What the launches in progress will cost in addition. */
  reservedMicrosPerHour: number
  /** The workspace has only free credit. */
  isFreeCredit: boolean
  plan: {
    boxes: number
    tiers: readonly Tier[]
    /** Whether ports may be shared by links that need no membership. */
    hasOpenLinks: boolean
    /** The tier of a new box whose request names none, if the balance lasts for long enough. */
    defaultTier: Tier
    /** The idle time of a new box whose request names none, in minutes; null: none. */
    defaultAutoPauseMin: number | null
  }
  /** The live boxes of the workspace. */
  liveBoxes: number
  /** Why the workspace is held; null: it is not. */
  hold: 'mining' | 'cpu' | null
  /** The balance may become negative. */
  mayOverdraw: boolean
  /** Where the balance is topped up. */
  billingUrl: string | null
  /** What the member of the request has spent in this billing cycle; null: unknown, or the request has no member. */
  spentThisCycleMicros: number | null
  /** The prices for an hour. */
  rates: { compute(tier: Tier): number; disk(tier: Tier): number }
}

/** Reads the facts in the transaction of the request. null: billing is off. */
export type LoadBilling = (trx: Trx, actor: Actor) => Promise<BillingFacts | null>
