// Describes the settings that all coordinators of a database share as text, and compares those of two coordinators.
import { createHash } from 'node:crypto'
import { formatCount } from '../../../shared/format-count.ts'
import type { Setting } from '../../base/define-settings.ts'
import type { PriceTable } from '../../billing/prices.ts'
import { formatProvider, type RegionProvider } from '../../providers/settings.ts'
import { type Config, SETTINGS } from '../config.ts'
import { OWN_LIMITS, SETTING_RULES, type SettingRule } from './setting-rules.ts'

/**
 * Variable, or a limit in BOXWOOD_LIMITS → canonical text, in the order of docs/configuration.md. '': not set, and there is no
 * default.
 */
export type SharedSettings = Readonly<Record<string, string>>

/** Secrets are hashed: the result may be stored. @param prices those that apply; null: billing is off */
export function describeSharedSettings(config: Config, prices: PriceTable | null): SharedSettings {
  const described: Record<string, string> = {}
  for (const { settings } of SETTINGS)
    for (const [field, setting] of Object.entries<Setting>(settings)) {
      const name = field as keyof typeof SETTING_RULES
      const rule: SettingRule = SETTING_RULES[name]
      if ('shared' in rule) described[setting.variable] = describeValue(config[name], setting, rule)
      else if (name === 'limitsFile') Object.assign(described, describeLimits(config))
      else if (name === 'pricesFile')
        described[setting.variable] = prices === null ? '' : hash(JSON.stringify(prices))
    }
  return described
}

/**
 * Returns the variables whose values differ, in the order of the first argument. A variable that only one coordinator knows is
 * no difference: the other has another version, during an upgrade.
 */
export const findDifferences = (own: SharedSettings, other: SharedSettings): string[] =>
  Object.keys(own).filter((variable) => variable in other && own[variable] !== other[variable])

/** The message for the operator. @param differences not empty @param other the name of the other coordinator */
export const formatDifferences = (differences: readonly string[], other: string): string =>
  `${formatCount(differences.length, 'setting')} of this coordinator and of ${other}, which uses the same database, differ: ${differences.join(', ')}. Give all coordinators of the database the same values. To change a value, stop all of them first.`

type Value = Config[keyof typeof SETTING_RULES]

function describeValue(
  value: Value,
  { isSecret = false }: Setting,
  { onlyWhether = false }: { onlyWhether?: boolean },
): string {
  if (onlyWhether) return value === null ? '' : 'set'
  const text = formatValue(value)
  return isSecret && text !== '' ? hash(text) : text
}

function formatValue(value: Value): string {
  if (value === null) return ''
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  // The first region can be the default: the order has a meaning.
  if (value instanceof Map)
    return [...(value as ReadonlyMap<string, RegionProvider>)]
      .map(([region, provider]) => `${region}=${formatProvider(provider)}`)
      .join(',')
  if (Array.isArray(value)) return value.toSorted().join(',')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** A limit is an entry of its own: a limit that only one version knows is no difference. */
const describeLimits = ({ limits }: Config): Record<string, string> =>
  Object.fromEntries(
    Object.entries(limits)
      .filter(([name]) => !OWN_LIMITS.has(name as keyof Config['limits']))
      .map(([name, value]) => [`${name} in BOXWOOD_LIMITS`, String(value)]),
  )

const hash = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`
