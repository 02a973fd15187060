// Schemas of the policies of a workspace (spec §2.9, §4.11).
import * as z from 'zod'
import { IMAGE_GLOB_PATTERN, MACHINE_ENROLLMENT, WEEKDAYS } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { boundedArray, integerBetween, tierSchema, timestampSchema } from './common.ts'

export type Weekday = (typeof WEEKDAYS)[number]

const { memberSpendCapUsd, memberBoxLimit, autoPauseMin, auditRetentionDays } = LIMITS

const SPEND_CAP_RULE = `must be an amount between 0.01 and ${memberSpendCapUsd.max} with at most two decimals`
const hasCents = (amount: number): boolean => Number(amount.toFixed(2)) === amount
const spendCapSchema = z
  .number(SPEND_CAP_RULE)
  .min(0.01, SPEND_CAP_RULE)
  .max(memberSpendCapUsd.max, SPEND_CAP_RULE)
  .refine(hasCents, SPEND_CAP_RULE)

const TIME_RULE = 'must be a time between 00:00 and 23:59, such as 22:30'
const timeSchema = z.string(TIME_RULE).regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, TIME_RULE)

const sortWeekdays = (days: readonly Weekday[]): Weekday[] => WEEKDAYS.filter((day) => days.includes(day))
const weekdaysSchema = boundedArray(z.enum(WEEKDAYS), WEEKDAYS.length).overwrite(sortWeekdays)

const TIMEZONE_RULE = 'must be an IANA time zone, such as Europe/Berlin'
/** Whether this program knows the time zone: its database of time zones may differ from that of another version. */
export function isTimezone(name: string): boolean {
  // Intl also knows offsets such as +01:00, which have no daylight saving time.
  if (!/^[A-Za-z][\w+/-]*$/.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

export const quietHoursSchema = z
  .strictObject({
    start: timeSchema.meta({ description: 'HH:MM, 24 hours, in the time zone' }),
    end: timeSchema.meta({
      description: 'HH:MM; differs from start. Before start: the period ends on the next day.',
    }),
    days: weekdaysSchema.meta({ description: 'the days on which the period starts' }),
    allDayDays: weekdaysSchema.meta({ description: 'the days that are quiet from midnight to midnight' }),
    timezone: z
      .string(TIMEZONE_RULE)
      .max(64, TIMEZONE_RULE)
      .refine(isTimezone, TIMEZONE_RULE)
      .meta({ description: 'IANA name, such as Europe/Berlin' }),
  })
  .refine(({ start, end }) => start !== end, { path: ['end'], error: 'must differ from start' })
  .refine(({ days, allDayDays }) => days.length + allDayDays.length > 0, {
    path: ['days'],
    error: 'must name a day when allDayDays is empty',
  })
  .meta({
    id: 'QuietHours',
    description:
      'Hours of the week. When a period starts, all running boxes are suspended once, apart from enrolled machines and boxes with quietHoursExempt; requests in progress are interrupted. A box that is created or woken afterwards stays awake until the next period starts. Overlapping and adjacent periods are one. A start that daylight saving time skips is at the next minute that exists; a repeated one happens once. A change applies from the next start',
  })
export type QuietHours = z.infer<typeof quietHoursSchema>

const IMAGES_RULE =
  'must be names of images in which * stands for any text, such as debian:* or registry.example.com/*'
const allowedImagesSchema = boundedArray(
  z.string(IMAGES_RULE).regex(IMAGE_GLOB_PATTERN, IMAGES_RULE),
  LIMITS.allowedImages,
)

/** What a change of each policy may set. */
const POLICY_VALUES = {
  memberSpendCapUsd: spendCapSchema.meta({
    id: 'MemberSpendCap',
    description:
      'what each member may spend in a billing cycle, in dollars with at most two decimals. A member who has spent it can create, fork, restore and wake no box, and resize none to a larger tier, until the cycle ends. Without billing, nothing is spent',
  }),
  memberBoxLimit: integerBetween(memberBoxLimit.min, memberBoxLimit.max).meta({
    id: 'MemberBoxLimit',
    description:
      'the number of boxes that each member may have: those that the member has created, also by fork, restore or as enrolled machines, and that are not being deleted',
  }),
  memberMaxTier: tierSchema.meta({
    description:
      'the largest tier with which members may create, fork, restore, resize and wake boxes, also those of others. Running boxes keep theirs',
  }),
  autoPauseFloorMin: integerBetween(autoPauseMin.min, autoPauseMin.max).meta({
    id: 'AutoPauseFloor',
    description:
      'the longest autoPauseMin that members may set, in minutes. A box that a member creates, forks or restores without one gets this value, and null is refused. Boxes that exist keep theirs until it is changed',
  }),
  quietHours: quietHoursSchema,
  auditRetentionDays: integerBetween(auditRetentionDays.min, auditRetentionDays.max).meta({
    description: `how long events of the audit log are kept, in days; default ${auditRetentionDays.default}`,
  }),
  allowedImages: allowedImagesSchema.meta({
    id: 'AllowedImages',
    description:
      'the images that boxes may have: names in which * stands for any text. A name matches as it was requested, and in its full form, such as docker.io/library/debian:12. Boxes that exist keep theirs, but cannot be copied. Boxes without an image are always allowed',
  }),
  machineEnrollment: z.enum(MACHINE_ENROLLMENT).meta({
    description: 'who may enroll machines as boxes: owners, or members too; default member',
  }),
  anyoneLinksOwnerOnly: z.boolean().meta({
    description:
      'whether only owners may create links to shared ports for anyone; default false. Existing links stay',
  }),
  shareLinks: z.boolean().meta({
    description:
      'whether ports may be shared by links that need no membership; default true. false also turns off existing links',
  }),
} as const

export type PolicyName = keyof typeof POLICY_VALUES
export const POLICY_NAMES = Object.keys(POLICY_VALUES) as PolicyName[]

export const policySchema = z
  .object({
    ...POLICY_VALUES,
    memberSpendCapUsd: POLICY_VALUES.memberSpendCapUsd.nullable(),
    memberBoxLimit: POLICY_VALUES.memberBoxLimit.nullable(),
    memberMaxTier: POLICY_VALUES.memberMaxTier.nullable(),
    autoPauseFloorMin: POLICY_VALUES.autoPauseFloorMin.nullable(),
    quietHours: POLICY_VALUES.quietHours.nullable(),
    allowedImages: POLICY_VALUES.allowedImages.nullable(),
  })
  .meta({
    id: 'Policy',
    description:
      'null: the policy is off. memberSpendCapUsd, memberBoxLimit, memberMaxTier and autoPauseFloorMin limit members and contractors. They do not limit owners, nor API keys without a user.',
  })
export type Policy = z.infer<typeof policySchema>

/** The policies of a workspace that has not changed them. */
export const DEFAULT_POLICY: Policy = {
  memberSpendCapUsd: null,
  memberBoxLimit: null,
  memberMaxTier: null,
  autoPauseFloorMin: null,
  quietHours: null,
  auditRetentionDays: auditRetentionDays.default,
  allowedImages: null,
  machineEnrollment: 'member',
  anyoneLinksOwnerOnly: false,
  shareLinks: true,
}

/** The body of PATCH /workspace/policies. */
export const patchPolicyRequestSchema = z
  .strictObject({
    memberSpendCapUsd: POLICY_VALUES.memberSpendCapUsd.nullish(),
    memberBoxLimit: POLICY_VALUES.memberBoxLimit.nullish(),
    memberMaxTier: POLICY_VALUES.memberMaxTier.nullish(),
    autoPauseFloorMin: POLICY_VALUES.autoPauseFloorMin.nullish(),
    quietHours: POLICY_VALUES.quietHours.nullish(),
    auditRetentionDays: POLICY_VALUES.auditRetentionDays.nullish(),
    allowedImages: POLICY_VALUES.allowedImages.nullish(),
    machineEnrollment: POLICY_VALUES.machineEnrollment.nullish(),
    anyoneLinksOwnerOnly: POLICY_VALUES.anyoneLinksOwnerOnly.nullish(),
    shareLinks: POLICY_VALUES.shareLinks.nullish(),
  })
  .meta({
    id: 'PatchPolicy',
    description: 'The policies to change. null: back to the default, which is off for most.',
  })
export type PatchPolicyRequest = z.infer<typeof patchPolicyRequestSchema>

export const policyResponseSchema = z
  .object({
    policy: policySchema,
    updatedBy: z
      .string()
      .nullable()
      .meta({ description: 'the id of the user who made the last change; null: there was none' }),
    updatedAt: timestampSchema.nullable(),
    quietHoursProblem: z
      .string()
      .nullable()
      .meta({ description: 'why no quiet hours start; null: nothing prevents them' }),
  })
  .meta({ id: 'WorkspacePolicy' })
export type PolicyResponse = z.infer<typeof policyResponseSchema>
