// Parses and formats the values of policies, as people type them.

import type { Policy, PolicyName } from '../../shared/api/policies.ts'
import { IMAGE_GLOB_PATTERN, MACHINE_ENROLLMENT } from '../../shared/field-values.ts'
import { formatCount } from '../../shared/format-count.ts'
import { LIMITS } from '../../shared/limits.ts'
import { TIER_NAMES } from '../../shared/tiers.ts'
import { createDurationParser, createIntegerParser, createNumberParser } from '../arguments/options.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { formatSetting } from '../output/format.ts'
import { formatQuietHours, parseQuietHours } from './quiet-hours.ts'

type PolicyValue<Name extends PolicyName> = {
  /** The text in the table and in error messages. */
  description: string
  /** @param timezone the time zone of this machine @throws CliError */
  parse(text: string, timezone: string): NonNullable<Policy[Name]>
  format(value: NonNullable<Policy[Name]>): string
  /** `off` is a value, not the absence of one. */
  isSwitch?: boolean
}

const MINUTE_MS = 60_000

const ON_OFF = {
  isSwitch: true,
  parse(text: string): boolean {
    if (text === 'on' || text === 'off') return text === 'on'
    throw new CliError(EXIT.usage, 'The value must be on or off.')
  },
  format: (value: boolean): string => (value ? 'on' : 'off'),
}

export const POLICIES: { [Name in PolicyName]: PolicyValue<Name> } = {
  memberSpendCapUsd: {
    description: 'what each member may spend in a billing cycle, in dollars',
    parse: (text) =>
      createNumberParser('The value', { min: 0.01, max: LIMITS.memberSpendCapUsd.max })(
        text.replace(/^\$/, ''),
      ),
    format: (value) => `$${value}`,
  },
  memberBoxLimit: {
    description: 'the number of boxes that each member may have',
    parse: createIntegerParser('The value', LIMITS.memberBoxLimit),
    format: String,
  },
  memberMaxTier: {
    description: 'the largest tier that members may create, resize or wake',
    parse(text) {
      const tier = TIER_NAMES.find((name) => name === text)
      if (tier !== undefined) return tier
      throw new CliError(EXIT.usage, `The value must be one of ${TIER_NAMES.join(', ')}.`)
    },
    format: (value) => value,
  },
  autoPauseFloorMin: {
    description: 'the longest --auto-pause that members may set, and their default',
    parse: createDurationParser('The value', 'minutes', LIMITS.autoPauseMin),
    format: (value) => formatSetting(value * MINUTE_MS),
  },
  quietHours: {
    description: 'when all running boxes are suspended',
    parse: parseQuietHours,
    format: formatQuietHours,
  },
  auditRetentionDays: {
    description: 'how long the events of the audit log are kept',
    parse: (text) =>
      createIntegerParser('The value', LIMITS.auditRetentionDays)(text.replace(/ ?d(ays?)?$/, '')),
    format: (value) => formatCount(Number(value), 'day'),
  },
  allowedImages: {
    description:
      'the images that boxes may have, separated by commas; * stands for any text, such as debian:*',
    parse(text) {
      const patterns = text.split(',').map((pattern) => pattern.trim())
      const wrong = patterns.find((pattern) => !IMAGE_GLOB_PATTERN.test(pattern))
      if (wrong === undefined) return patterns
      throw new CliError(
        EXIT.usage,
        `The value must be names of images such as debian:* or registry.example.com/*, separated by commas; ${JSON.stringify(wrong)} is none.`,
      )
    },
    format: (value) => value.join(', ') || 'none',
  },
  machineEnrollment: {
    description: 'who may enroll machines: owner, or member for both',
    parse(text) {
      const role = MACHINE_ENROLLMENT.find((name) => name === text)
      if (role !== undefined) return role
      throw new CliError(EXIT.usage, `The value must be ${MACHINE_ENROLLMENT.join(' or ')}.`)
    },
    format: (value) => value,
  },
  anyoneLinksOwnerOnly: {
    description: 'whether only owners may share a port by an anyone link',
    ...ON_OFF,
  },
  shareLinks: { description: 'whether ports may be shared by links', ...ON_OFF },
}

export const POLICY_NAMES = Object.keys(POLICIES) as PolicyName[]

/** Accepts other spellings such as `member-box-limit`. @throws CliError */
export function findPolicyName(typed: string): PolicyName {
  const normalize = (text: string) => text.replace(/[-_]/g, '').toLowerCase()
  const found = POLICY_NAMES.find((name) => normalize(name) === normalize(typed))
  if (found !== undefined) return found
  throw new CliError(EXIT.usage, `The policy must be one of ${POLICY_NAMES.join(', ')}.`)
}

/** null: back to the default. @throws CliError */
export function parsePolicyValue<Name extends PolicyName>(
  name: Name,
  text: string,
  timezone: string,
): Policy[Name] | null {
  const policy: PolicyValue<Name> = POLICIES[name]
  const isReset = text === 'default' || (text === 'off' && !policy.isSwitch)
  return isReset ? null : policy.parse(text, timezone)
}

export function formatPolicyValue<Name extends PolicyName>(name: Name, value: Policy[Name]): string {
  const policy: PolicyValue<Name> = POLICIES[name]
  return value === null ? 'off' : policy.format(value as NonNullable<Policy[Name]>)
}
