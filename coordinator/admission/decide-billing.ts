// Decides whether billing admits a request (spec §4.3, §7.1). Pure functions of the request and its facts.
import { formatCount } from '../../shared/format-count.ts'
import { formatDollars } from '../../shared/format-dollars.ts'
import { HOLD_MESSAGES } from '../../shared/hold-messages.ts'
import { TIER_NAMES, type Tier } from '../../shared/tiers.ts'
import { type BillingFacts, type Funds, needsFunds } from './billing-facts.ts'
import type { AdmissionFacts } from './facts.ts'
import type { Refusal } from './refusal.ts'
import type { AdmissionAction, AdmissionRequest } from './request.ts'

/** A held workspace can still change the settings of its boxes. */
const ADMITTED_ON_HOLD: ReadonlySet<AdmissionAction> = new Set(['patch', 'give'])

/** Spec §7.1, workspace_held. It is decided before the policies. */
export function decideHold({ action }: AdmissionRequest, { billing }: AdmissionFacts): Refusal | null {
  if (billing === null || billing.hold === null || ADMITTED_ON_HOLD.has(action)) return null
  return { code: 'workspace_held', message: HOLD_MESSAGES[billing.hold] }
}

/** It is decided after the policies. */
export function decideBilling(request: AdmissionRequest, { billing }: AdmissionFacts): Refusal | null {
  if (billing === null) return null
  if (request.action === 'share') return refuseShare(request, billing)
  if (!needsFunds(request.action)) return null
  const { funds } = billing
  if (funds === null) throw new Error(`The funds for the action ${request.action} were not read.`)
  switch (request.action) {
    case 'create':
    case 'fork':
    case 'restore':
      return (
        refuseCount(funds, billing) ??
        refuseTier(request.tier, request.action, billing) ??
        refuseBurn(funds.rates.compute(request.tier), funds, billing)
      )
    case 'enroll':
      return refuseCount(funds, billing)
    case 'wake':
      return refuseWake(request.box.tier, funds, billing)
    case 'resize':
      return refuseTier(request.tier, 'resize', billing) ?? refuseResize(request, funds, billing)
    default:
      return null
  }
}

/** Without a provider of payments, the operator adds what was paid. */
const addCredit = ({ billingUrl }: BillingFacts): string =>
  billingUrl === null ? 'let the operator add credit with `boxwood credit`' : 'add credit'

function refuseCount({ liveBoxes }: Funds, billing: BillingFacts): Refusal | null {
  const { plan, isFreeCredit } = billing
  if (liveBoxes < plan.boxes) return null
  const limit = plan.boxes
  const boxes = formatCount(limit, 'box', 'boxes')
  const message = isFreeCredit
    ? `Free credit alone runs ${boxes}. Delete a box, or ${addCredit(billing)}.`
    : `The plan of the workspace has ${boxes}. Delete a box first.`
  return { code: 'box_limit', limit, message }
}

/** Spec §7.1: a restore to a size off the plan has a code of its own. */
function refuseTier(
  tier: Tier,
  action: 'create' | 'fork' | 'restore' | 'resize',
  billing: BillingFacts,
): Refusal | null {
  const { plan } = billing
  if (plan.tiers.includes(tier)) return null
  const allowed = TIER_NAMES.filter((name) => plan.tiers.includes(name))
  const message = `Free credit alone runs the tiers ${allowed.join(', ')}. Choose one of them, or ${addCredit(billing)}.`
  return action === 'restore'
    ? { code: 'restore_tier_not_allowed', message }
    : { code: 'tier_unavailable', allowed, message }
}

/** Spec §7.1: the balance must last for four hours. A tier that the service chooses is one for which it lasts longer (default-tier.ts). */
export const REQUIRED_HOURS = 4

type Shortage = { requiredMicros: number; ratePerHour: number }

/**
 * @param rate what the request adds, in micro-dollars per hour
 * @returns null when the balance lasts for four hours with all boxes that run, start, and would be started
 */
function findShortage(rate: number, funds: Funds): Shortage | null {
  if (rate <= 0) return null
  const ratePerHour = funds.burnMicrosPerHour + funds.reservedMicrosPerHour + rate
  const requiredMicros = REQUIRED_HOURS * ratePerHour
  const availableMicros = funds.balanceMicros + funds.overdraftMicros
  return availableMicros >= requiredMicros ? null : { requiredMicros, ratePerHour }
}

/** Spec §4.3: burnMicrosPerHour repeats the allowance in this error. */
function refuseBurn(rate: number, funds: Funds, billing: BillingFacts): Refusal | null {
  const shortage = findShortage(rate, funds)
  if (shortage === null) return null
  const { ratePerHour, requiredMicros } = shortage
  const message = `${describe(shortage, funds)} Suspend or delete boxes, choose a smaller tier, or ${addCredit(billing)}.`
  return {
    code: 'insufficient_balance',
    balanceMicros: funds.balanceMicros,
    requiredMicros,
    burnMicrosPerHour: ratePerHour,
    admissionMicrosPerHour: ratePerHour,
    message,
  }
}

function describe({ requiredMicros }: Shortage, { balanceMicros, overdraftMicros }: Funds): string {
  const card = overdraftMicros > 0 ? `, the saved card counts for ${formatDollars(overdraftMicros)}` : ''
  return `The balance must last for ${REQUIRED_HOURS} hours with all boxes: it is ${formatDollars(balanceMicros)}${card}, and ${formatDollars(requiredMicros)} are required.`
}

/** A box that runs after a resize adds the difference of the prices. The disk of one that does not run counts too. */
function refuseResize(
  { box, tier }: Extract<AdmissionRequest, { action: 'resize' }>,
  funds: Funds,
  billing: BillingFacts,
): Refusal | null {
  const price = box.desired_state === 'running' ? funds.rates.compute : funds.rates.disk
  return refuseBurn(price(tier) - price(box.tier), funds, billing)
}

function refuseWake(tier: Tier, funds: Funds, billing: BillingFacts): Refusal | null {
  const shortage = findShortage(funds.rates.compute(tier) - funds.rates.disk(tier), funds)
  if (shortage === null) return null
  const { billingUrl } = billing
  const isEmpty = funds.balanceMicros <= 0
  const reason = describe(shortage, funds)
  return {
    code: 'wake_rejected',
    message: `${reason} Suspend or delete other boxes, or ${addCredit(billing)}.`,
    reason,
    cause: isEmpty ? 'balance_empty' : 'balance_low',
    ...(isEmpty && billingUrl !== null && { billingUrl }),
  }
}

/** Spec §7.1: links that need no membership. */
function refuseShare(
  { access }: Extract<AdmissionRequest, { action: 'share' }>,
  { plan }: BillingFacts,
): Refusal | null {
  return !plan.hasOpenLinks && access !== 'members' ? { code: 'share_links_need_payment' } : null
}
