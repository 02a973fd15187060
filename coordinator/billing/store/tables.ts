// The rows of the tables of billing. Instants of usage are integer epoch seconds, others are milliseconds; money is micro-dollars.
import type { BillingEntry } from '../../../shared/api/billing.ts'
import type { Hold } from '../../../shared/api/operator.ts'
import type { Tier } from '../../../shared/tiers.ts'

/**
 * What a box or a snapshot costs: `launching` nothing yet, `waking` like `disk`. Both will be `compute` next, which a request to
 * start another box must leave balance for. `ended` costs nothing any more: the meter is deleted when its segments are charged.
 */
export type MeterMode = 'launching' | 'waking' | 'compute' | 'disk' | 'snapshot' | 'ended'

export type BillingAccountRow = {
  workspace_id: string
  /** The sum of the entries that credit `balance` minus those that debit it. Negative: the workspace owes. */
  balance_micros: number
  /** The whole hour until which usage is in the entries, in epoch seconds. */
  charged_until: number
  /** When the free credit was given or refused; null: no owner has confirmed an email address yet. */
  free_credit_decided_at: number | null
  /** The first payment; null: the workspace has had free credit only. */
  paid_at: number | null
  hold: Hold | null
  /** When boxes on free credit used a full CPU for long. Only shown to operators. */
  flagged_at: number | null
  /** Since when the balance is low, and since when it is empty; null: it is not. */
  warned_at: number | null
  emptied_at: number | null
  /** The ids that the payment provider has for the workspace and for its card. */
  customer_id: string | null
  payment_method_id: string | null
  /** What the saved card has paid, without what was refunded since. */
  card_paid_micros: number
  /** Since when a payment is in progress. */
  collecting_since: number | null
  /** The amount of the last payment from the saved card, also while it is in progress. null: an earlier version has started it. */
  collection_micros: number | null
  payment_failed_at: number | null
  /** Why it has failed, for the owners. */
  payment_failure: string | null
  /** Until when boxes run on although the last payment has failed. */
  payment_grace_until: number | null
  created_at: number
}

/** A person who has had free credit. */
export type FreeCreditRow = {
  /** SHA-256 of the email address (free-credit.ts). */
  email_hash: string
  at: number
}

export type EntryKind = BillingEntry['kind']

/** The accounts of the double-entry ledger. `balance` is what the workspace has; the others are those of the deployment. */
export type LedgerAccount =
  | 'balance'
  | 'usage'
  | 'promotions'
  | 'manual_payments'
  | 'card_payments'
  | 'adjustments'

/** An entry moves an amount from one account to another, and is never changed. */
export type BillingEntryRow = {
  workspace_id: string
  /** What has caused the entry, such as `usage:<box id>:<epoch seconds>`. Unique in the workspace: a repeated write has no effect. */
  cause: string
  kind: EntryKind
  debit: LedgerAccount
  credit: LedgerAccount
  /** Above 0. */
  amount_micros: number
  /** Of usage: the box, its owner, and the interval. */
  box_id: string | null
  user_id: string | null
  since: number | null
  until: number | null
  note: string | null
  at: number
}

/** The current interval of a box or snapshot that costs something or will. */
export type BillingMeterRow = {
  /** The id of the box or of the snapshot. */
  subject_id: string
  workspace_id: string
  /** Of a snapshot: the box of which it is. */
  box_id: string
  /** The owner of the box. */
  user_id: string
  mode: MeterMode
  tier: Tier
  /** Of a snapshot. */
  megabytes: number
  since: number
  /** What is charged with the next whole micro-dollar, in nano-dollars per hour × seconds: less than 3,600,000. */
  carry: number
}

/** A past interval that is not in the entries yet. */
export type BillingSegmentRow = Omit<BillingMeterRow, 'carry'> & { until: number }

/** The usage of a box for its owner, with its snapshots, in a day or month in UTC. */
export type BillingTotalRow = {
  workspace_id: string
  /** Such as 2030-01-31 or 2030-01. */
  period: string
  box_id: string
  user_id: string
  amount_micros: number
  compute_seconds: number
}

declare module '../../db/schema.ts' {
  interface Tables {
    billing_accounts: BillingAccountRow
    billing_entries: BillingEntryRow
    billing_meters: BillingMeterRow
    billing_segments: BillingSegmentRow
    billing_totals: BillingTotalRow
    free_credits: FreeCreditRow
  }
}
