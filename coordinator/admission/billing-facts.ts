// The facts of billing by which a request is admitted.
import type { Tier } from '../../shared/tiers.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import type { AdmissionAction } from './request.ts'

export type BillingFacts = {
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
  /** Why the workspace is held; null: it is not. */
  hold: 'mining' | 'cpu' | null
  /** Where the balance is topped up. */
  billingUrl: string | null
  /** null: the request changes nothing that costs something (needsFunds). */
  funds: Funds | null
}

/** Amounts are integer micro-dollars. */
export type Funds = {
  balanceMicros: number
  /** What the boxes and snapshots of the workspace cost now. */
  burnMicrosPerHour: number
  /** What the launches in progress will cost in addition. */
  reservedMicrosPerHour: number
  /** What counts in addition to the balance: a saved card pays, and its last payment has not failed. */
  overdraftMicros: number
  /** The live boxes of the workspace. */
  liveBoxes: number
  /** What the member of the request has spent in this billing cycle; null: unknown, or the request has no member. */
  spentThisCycleMicros: number | null
  /** The prices for an hour. */
  rates: { compute(tier: Tier): number; disk(tier: Tier): number }
}

const ACTIONS_WITH_COST: ReadonlySet<AdmissionAction> = new Set([
  'create',
  'enroll',
  'fork',
  'restore',
  'wake',
  'resize',
  'give',
])

/** Whether the action starts, enlarges, counts or gives boxes. The funds of the others are not read: that reads all boxes of the workspace. */
export const needsFunds = (action: AdmissionAction): boolean => ACTIONS_WITH_COST.has(action)

/** Reads the facts in the transaction of the request. null: billing is off. */
export type LoadBilling = (trx: Trx, actor: Actor, action: AdmissionAction) => Promise<BillingFacts | null>
