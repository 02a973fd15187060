// The policies: what each means, its value as text, and the value that a form sends.
import type { PatchPolicyRequest, Policy, PolicyName } from '../../shared/api/policies.ts'

type PolicyKind = 'number' | 'tier' | 'list' | 'role' | 'switch' | 'quietHours'

export const POLICIES: Record<PolicyName, { kind: PolicyKind; title: string; description: string }> = {
  auditRetentionDays: {
    kind: 'number',
    title: 'Retention of the audit log',
    description: 'how long the events of the audit log are kept, in days',
  },
  allowedImages: {
    kind: 'list',
    title: 'Allowed images',
    description: 'the images that boxes may have; * stands for any text, such as debian:*',
  },
  machineEnrollment: { kind: 'role', title: 'Enrolling machines', description: 'who may enroll machines' },
  anyoneLinksOwnerOnly: {
    kind: 'switch',
    title: 'Links for anyone: owners only',
    description: 'only owners may share a port by a link for anyone',
  },
  shareLinks: {
    kind: 'switch',
    title: 'Links without membership',
    description: 'ports may be shared by links that need no membership',
  },
  memberSpendCapUsd: {
    kind: 'number',
    title: 'Spending of each member',
    description: 'what each member may spend in a billing cycle, in dollars',
  },
  memberBoxLimit: {
    kind: 'number',
    title: 'Boxes of each member',
    description: 'the number of boxes that each member may have',
  },
  memberMaxTier: {
    kind: 'tier',
    title: 'Largest tier of members',
    description: 'the largest tier with which members may create, resize and wake boxes',
  },
  autoPauseFloorMin: {
    kind: 'number',
    title: 'Longest idle time',
    description: 'the longest idle time that members may set, in minutes, and their default',
  },
  quietHours: {
    kind: 'quietHours',
    title: 'Quiet hours',
    description: 'when all running boxes are suspended, once at each start',
  },
}
export const POLICY_NAMES = Object.keys(POLICIES) as PolicyName[]

export const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
type QuietHours = NonNullable<Policy['quietHours']>

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
    case 'switch':
      return value === 'on'
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
      return value === '' ? null : (value as NonNullable<Policy['memberMaxTier']>)
  }
}
