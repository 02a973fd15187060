// The policies: their names and values for people, and the value that a form sends.
import type { PatchPolicyRequest, Policy, PolicyName } from '../../shared/api/policies.ts'
import type { Tier } from '../../shared/tiers.ts'
import { formatCount } from './format-count.ts'
import { formatTier } from './tiers.ts'

type PolicyKind = 'number' | 'tier' | 'list' | 'choice' | 'quietHours'

type PolicyInfo<Value> = {
  kind: PolicyKind
  title: string
  /** A sentence. */
  description: string
  /** The unit of a number, for the label of its field. */
  unit?: string
  /** The value of a new workspace. */
  initial: Value
  /** The value of a choice as `box policies set` accepts it, with its words. */
  options?: Readonly<Record<string, string>>
  /** In words. */
  format(value: Value): string
}
type PolicyTable = { [Name in PolicyName]: PolicyInfo<Policy[Name]> }

const OWNERS_AND_MEMBERS = 'Owners and members'
const OWNERS = 'Owners only'
const count = (noun: string, plural?: string) => (value: number | null) =>
  value === null ? 'No limit' : formatCount(value, noun, plural)

export const POLICIES: PolicyTable = {
  memberBoxLimit: {
    kind: 'number',
    title: 'Boxes of each member',
    description: 'How many boxes a member may have. Owners have no limit.',
    unit: 'boxes',
    initial: null,
    format: count('box', 'boxes'),
  },
  memberMaxTier: {
    kind: 'tier',
    title: 'Largest tier of members',
    description: 'The largest boxes that members may create, resize and wake.',
    initial: null,
    format: (tier) => (tier === null ? 'Any tier' : formatTier(tier)),
  },
  autoPauseFloorMin: {
    kind: 'number',
    title: 'Longest idle time',
    description: 'A box of a member is suspended at the latest when it has been idle for this time.',
    unit: 'minutes',
    initial: null,
    format: count('minute'),
  },
  allowedImages: {
    kind: 'list',
    title: 'Allowed images',
    description: 'The images that new boxes may have. * stands for any text, such as debian:*.',
    initial: null,
    format: (images) => (images === null ? 'All images' : images.join(', ') || 'No image'),
  },
  quietHours: {
    kind: 'quietHours',
    title: 'Quiet hours',
    description: 'All running boxes are suspended once, when the quiet hours begin.',
    initial: null,
    format: (value) => (value === null ? 'None' : describeQuietHours(value)),
  },
  memberSpendCapUsd: {
    kind: 'number',
    title: 'Spending of each member',
    description: 'What the boxes of a member may cost in a month. Owners have no limit.',
    unit: 'dollars a month',
    initial: null,
    format: (dollars) =>
      dollars === null ? 'No limit' : `$${dollars.toFixed(2).replace('.00', '')} a month`,
  },
  shareLinks: {
    kind: 'choice',
    title: 'Links without a sign-in',
    description: 'Whether ports may be shared with people who are not members of the workspace.',
    initial: true,
    options: { on: 'Allowed', off: 'Not allowed' },
    format: (isAllowed) => (isAllowed ? 'Allowed' : 'Not allowed'),
  },
  anyoneLinksOwnerOnly: {
    kind: 'choice',
    title: 'Who may share with anyone',
    description: 'Who may create links that work without a sign-in. Existing links stay.',
    initial: false,
    options: { off: OWNERS_AND_MEMBERS, on: OWNERS },
    format: (isOwnerOnly) => (isOwnerOnly ? OWNERS : OWNERS_AND_MEMBERS),
  },
  machineEnrollment: {
    kind: 'choice',
    title: 'Who may add machines',
    description: 'Who may join their own machines to the workspace as boxes.',
    initial: 'member',
    options: { member: OWNERS_AND_MEMBERS, owner: OWNERS },
    format: (role) => (role === 'owner' ? OWNERS : OWNERS_AND_MEMBERS),
  },
  auditRetentionDays: {
    kind: 'number',
    title: 'Retention of the audit log',
    description: 'How long the events of the audit log are kept.',
    unit: 'days',
    initial: 90,
    format: (days) => formatCount(days, 'day'),
  },
}

/** The groups of the page, in their order. */
export const POLICY_GROUPS: Readonly<Record<string, readonly PolicyName[]>> = {
  Boxes: ['memberBoxLimit', 'memberMaxTier', 'autoPauseFloorMin', 'quietHours', 'allowedImages'],
  Spending: ['memberSpendCapUsd'],
  'Links and ports': ['shareLinks', 'anyoneLinksOwnerOnly'],
  'Access and records': ['machineEnrollment', 'auditRetentionDays'],
}

export const describePolicy = <Name extends PolicyName>(name: Name, policy: Policy): string =>
  POLICIES[name].format(policy[name])

/** The value of a new workspace in words. */
export const describeInitial = <Name extends PolicyName>(name: Name): string =>
  POLICIES[name].format(POLICIES[name].initial)

/** The value is that of a new workspace. */
export const isInitial = (name: PolicyName, policy: Policy): boolean =>
  policy[name] === POLICIES[name].initial

export const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
type Weekday = (typeof WEEKDAYS)[number]
type QuietHours = NonNullable<Policy['quietHours']>

export const WEEKDAY_NAMES: Record<Weekday, string> = {
  mon: 'Monday',
  tue: 'Tuesday',
  wed: 'Wednesday',
  thu: 'Thursday',
  fri: 'Friday',
  sat: 'Saturday',
  sun: 'Sunday',
}

/** Such as `Mon–Fri`, or `Mon, Wed`. */
function describeDays(days: readonly Weekday[]): string {
  const [first, last] = [days[0], days.at(-1)]
  if (first === undefined || last === undefined) return ''
  const short = (day: Weekday) => WEEKDAY_NAMES[day].slice(0, 3)
  const isRange = days.length > 2 && WEEKDAYS.indexOf(last) - WEEKDAYS.indexOf(first) === days.length - 1
  return isRange ? `${short(first)}–${short(last)}` : days.map(short).join(', ')
}

function describeQuietHours({ start, end, days, allDayDays, timezone }: QuietHours): string {
  return [
    days.length > 0 && `${describeDays(days)} from ${start} to ${end}`,
    allDayDays.length > 0 && `${describeDays(allDayDays)} all day`,
    timezone,
  ]
    .filter(Boolean)
    .join('; ')
}

/** As `box policies set` accepts it. */
export function formatPolicyValue(value: Policy[PolicyName]): string {
  if (value === null) return 'off'
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  if (Array.isArray(value)) return value.join(',') || 'none'
  if (typeof value === 'object') return formatQuietHours(value)
  return String(value)
}

function formatQuietHours({ start, end, days, allDayDays, timezone }: QuietHours): string {
  return [
    days.length > 0 && `${days.join(',')} ${start}-${end}`,
    allDayDays.length > 0 && `${allDayDays.join(',')} all-day`,
    timezone,
  ]
    .filter(Boolean)
    .join(' ')
}

/** The fields of the form with their values, by name. A list has one item per line. */
export function toFormValues(value: Policy[PolicyName]): Record<string, string> {
  if (typeof value !== 'object' || value === null)
    return { value: value === null ? '' : formatPolicyValue(value) }
  if (Array.isArray(value)) return { value: value.join('\n') }
  const { start, end, days, allDayDays, timezone } = value
  return { start, end, timezone, days: days.join('\n'), allDayDays: allDayDays.join('\n') }
}

/** Null: the form is not complete. The coordinator checks the values. */
export function parsePolicyForm(
  name: PolicyName,
  values: Record<string, string>,
): NonNullable<PatchPolicyRequest[PolicyName]> | null {
  const { value = '' } = values
  const lines = (text = '') =>
    text
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean)
  switch (POLICIES[name].kind) {
    case 'number':
      return value.trim() === '' || Number.isNaN(Number(value)) ? null : Number(value)
    case 'choice':
      return value === 'on' ? true : value === 'off' ? false : (value as Policy['machineEnrollment'])
    case 'list':
      return lines(value)
    case 'quietHours': {
      const { start = '', end = '', timezone = '' } = values
      const days = lines(values.days) as QuietHours['days']
      const allDayDays = lines(values.allDayDays) as QuietHours['days']
      return timezone === '' || days.length + allDayDays.length === 0
        ? null
        : { start, end, timezone, days, allDayDays }
    }
    default:
      return value === '' ? null : (value as Tier)
  }
}
