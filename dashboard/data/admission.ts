// Why a request for a box will probably be refused, as far as the user may read what decides it. The coordinator decides.

import type { BillingDetails } from '../../shared/api/billing.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type { RegionInfo } from '../../shared/api/images.ts'
import type { Policy } from '../../shared/api/policies.ts'
import type { Region, Tier } from '../../shared/tiers.ts'
import { formatBoxCount, formatMicros, MICROS_PER_DOLLAR } from './billing.ts'
import { formatGb } from './sizes.ts'
import { isLargerTier, SMALLEST_TIER, TIERS } from './tiers.ts'
import { showHidden } from './visible-text.ts'

export type AdmissionRules = {
  /** The user of the page. */
  userId: string
  regions: readonly RegionInfo[]
  /** When the closing of the workspace was requested; null: it is open. */
  closingAt: string | null
  /** Null: all, or not known. */
  allowedImages: readonly string[] | null
  /** The policies that limit the user; null: none, or not known. */
  memberLimits: Policy | null
  /** What the user has spent in this billing cycle; 0 without memberSpendCapUsd. */
  spentMicros: number
  /** Null: billing is off, or not known. */
  billing: Finances | null
}

type Finances = Pick<
  BillingDetails,
  'balanceMicros' | 'burnMicrosPerHour' | 'overdraftMicros' | 'paymentFailed' | 'plan' | 'prices'
>

/** What a form asks for. */
export type AdmissionRequest = {
  /** The tier of the box that is resized, and whether it runs; absent: the request creates a box. */
  resized?: Pick<Box, 'tier' | 'desiredState'>
  /** Null: the coordinator chooses. */
  tier: Tier | null
  /** Null: none, or not known. */
  image?: string | null
  /** Where the files of the new box are; absent: it starts empty. */
  region?: Region
  /** The space that they need; null: not known. */
  sizeGb?: number | null
}

/** `label` says it beside the tier, `message` in a sentence. */
type TierRefusal = { label: string; message: string }

/** Null: no reason is known. */
export function refuseTier(
  tier: Tier,
  request: AdmissionRequest,
  { memberLimits, billing }: AdmissionRules,
): TierRefusal | null {
  const max = memberLimits?.memberMaxTier ?? null
  if (max !== null && isLargerTier(tier, max))
    return {
      label: 'above the policy memberMaxTier',
      message: `The policy memberMaxTier lets members use tiers up to ${max}.`,
    }
  if (billing?.plan && !billing.plan.tiers.includes(tier))
    return {
      label: 'not on free credit',
      message: `Free credit alone runs the tiers ${billing.plan.tiers.join(', ')}.`,
    }
  const { sizeGb = null } = request
  const { diskGb } = TIERS[tier]
  if (sizeGb !== null && sizeGb > diskGb)
    return {
      label: 'its disk is too small',
      message: `The files need ${formatGb(sizeGb)}, and the disk of the tier ${tier} has ${diskGb} GB.`,
    }
  return billing && refuseByBalance(tier, request, billing)
}

/** Spec §7.1: the balance must last for four hours with all boxes. */
const REQUIRED_HOURS = 4

function refuseByBalance(
  tier: Tier,
  { resized }: AdmissionRequest,
  { prices, balanceMicros, burnMicrosPerHour, overdraftMicros, paymentFailed }: Finances,
): TierRefusal | null {
  if (prices === null) return null
  // What a card is trusted with, until a payment fails.
  const trusted = paymentFailed ? 0 : overdraftMicros
  const priceOf = (name: Tier): number => {
    const price = prices.tiers.find((each) => each.tier === name)
    const isRunning = resized === undefined || resized.desiredState === 'running'
    return (isRunning ? price?.runningMicrosPerHour : price?.diskMicrosPerHour) ?? 0
  }
  const added = priceOf(tier) - (resized === undefined ? 0 : priceOf(resized.tier))
  const required = REQUIRED_HOURS * (burnMicrosPerHour + added)
  if (added <= 0 || balanceMicros + trusted >= required) return null
  return {
    label: 'the balance is too low',
    message: `The balance must last for ${REQUIRED_HOURS} hours with all boxes: it is ${formatMicros(balanceMicros)}${trusted > 0 ? `, the saved card counts for ${formatMicros(trusted)}` : ''}, and ${formatMicros(required)} are required.`,
  }
}

/** @param boxes those of the workspace that the user sees. Null: no reason is known */
export function explainRefusal(
  request: AdmissionRequest,
  rules: AdmissionRules,
  boxes: Iterable<Box>,
): string | null {
  const { resized, tier, image = null } = request
  if (rules.closingAt !== null)
    return `The workspace is closing, and no box can be ${resized ? 'resized' : 'created'}. Reopen it on the page Settings.`
  return (
    (resized ? null : (refuseCount(rules, [...boxes]) ?? refuseRegion(request, rules))) ??
    // The coordinator chooses no tier that it refuses, if there is one.
    refuseTier(tier ?? SMALLEST_TIER, request, rules)?.message ??
    refuseSpend(request, rules) ??
    refuseImage(image, rules)
  )
}

function refuseCount(
  { userId, memberLimits, billing }: AdmissionRules,
  boxes: readonly Box[],
): string | null {
  const live = boxes.filter(({ desiredState }) => desiredState !== 'terminated')
  const limit = memberLimits?.memberBoxLimit ?? null
  const own = live.filter(({ ownerUserId }) => ownerUserId === userId).length
  if (limit !== null && own >= limit)
    return `The policy memberBoxLimit allows each member ${formatBoxCount(limit)}, and you have ${own}.`
  const plan = billing?.plan ?? null
  if (plan === null || live.length < plan.boxes) return null
  return plan.name === 'free'
    ? `Free credit alone runs ${formatBoxCount(plan.boxes)}. Delete a box, or add credit.`
    : `The plan of the workspace has ${formatBoxCount(plan.boxes)}. Delete a box first.`
}

function refuseRegion({ region }: AdmissionRequest, { regions }: AdmissionRules): string | null {
  if (region === undefined) return null
  const info = regions.find((each) => each.region === region)
  if (info === undefined) return `The files are in ${region}, where this Boxwood creates no boxes.`
  return info.snapshots ? null : `The boxes of ${region} cannot be copied.`
}

function refuseSpend({ resized, tier }: AdmissionRequest, { memberLimits, spentMicros }: AdmissionRules) {
  const cap = memberLimits?.memberSpendCapUsd ?? null
  if (cap === null || spentMicros < cap * MICROS_PER_DOLLAR) return null
  if (resized !== undefined && (tier === null || !isLargerTier(tier, resized.tier))) return null
  return `You have spent ${formatMicros(spentMicros)} in this billing cycle, and the policy memberSpendCapUsd allows each member ${formatMicros(cap * MICROS_PER_DOLLAR)}.`
}

function refuseImage(image: string | null, { allowedImages }: AdmissionRules): string | null {
  if (image === null || matchesImages(image, allowedImages)) return null
  return `The policy allowedImages may refuse the image ${showHidden(image)}. It allows ${showHidden(allowedImages?.join(', ') || 'none')}.`
}

/** Whether a policy allows the image, as far as its name shows; the coordinator also compares its full form. */
export function matchesImages(image: string, allowed: readonly string[] | null): boolean {
  if (allowed === null || image === '') return true
  return allowed.some((pattern) => {
    const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    return new RegExp(`^${parts.join('.*')}$`).test(image)
  })
}
