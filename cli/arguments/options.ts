// Options that several commands share, and parsers of option values.
import { type Command, Option } from 'commander'
import { ENV_NAME_PATTERN } from '../../shared/field-values.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { formatSetting } from '../output/format.ts'
import { parseDuration } from './parse-time.ts'

export const isEnvName = (text: string): boolean => ENV_NAME_PATTERN.test(text)

export type JsonOption = { json?: boolean }
export type WaitOption = { wait: boolean }
export type QuietOption = { quiet?: boolean }

export const createJsonOption = (description = 'print the result as JSON') =>
  new Option('--json', description)
export const createNoWaitOption = () =>
  new Option('--no-wait', 'return immediately, do not wait for completion')

export const createQuietOption = () => new Option('-q, --quiet', 'print no progress, only results and errors')

/** The options of commands that wait for a change and print its result. */
export type OutputOptions = JsonOption & QuietOption & WaitOption

export const addOutputOptions = (command: Command): Command =>
  command.addOption(createNoWaitOption()).addOption(createQuietOption()).addOption(createJsonOption())

/** --filter of a list. */
export class FilterOption extends Option {
  readonly keys: readonly string[]

  constructor(keys: readonly string[]) {
    super('--filter <key=value>', `show only matching rows; can be repeated. Keys: ${keys.join(', ')}`)
    this.keys = keys
  }
}

export type Range = { min: number; max: number }

/** Returns a parser of an integer. `option` is as typed, such as --ttl. */
export function createIntegerParser(option: string, { min, max }: Range): (text: string) => number {
  return (text) =>
    requireInRange(
      /^\d{1,9}$/.test(text) ? Number(text) : null,
      { min, max },
      `${option} must be an integer between ${min} and ${max}.`,
    )
}

/** Returns a parser of a number with or without a fraction. */
export function createNumberParser(option: string, { min, max }: Range): (text: string) => number {
  return (text) =>
    requireInRange(
      text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : null,
      { min, max },
      `${option} must be a number between ${min} and ${max}.`,
    )
}

/** The unit of a duration option that is a number alone. */
type DurationUnit = 'minutes' | 'hours'
const DURATION_UNIT_MS: Record<DurationUnit, number> = { minutes: 60_000, hours: 3_600_000 }

/** Returns a parser of a duration such as 2h, or a number of `unit`. The result is an integer of `unit`. */
export function createDurationParser(
  option: string,
  unit: DurationUnit,
  { min, max }: Range,
): (text: string) => number {
  const unitMs = DURATION_UNIT_MS[unit]
  const format = (value: number) => formatSetting(value * unitMs)
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : (parseDuration(text) ?? Number.NaN) / unitMs
    return requireInRange(
      Number.isInteger(value) ? value : null,
      { min, max },
      `${option} must be a duration from ${format(min)} to ${format(max)} in whole ${unit}, such as ${unit === 'minutes' ? '90m, ' : ''}2h or 1d. A number alone is ${unit}.`,
    )
  }
}

const OFF_WORDS = ['off', 'none', 'never']
export type OrOff<T> = T | 'off'

/** The parser also accepts `off`, `none` and `never`. It returns 'off', because commander would replace null. */
export const allowOff =
  <T>(parse: (text: string) => T) =>
  (text: string): OrOff<T> =>
    OFF_WORDS.includes(text) ? 'off' : parse(text)

export const offToNull = <T>(value: OrOff<T>): T | null => (value === 'off' ? null : value)

/** @param value null: not a number */
function requireInRange(value: number | null, { min, max }: Range, message: string): number {
  if (value !== null && value >= min && value <= max) return value
  throw new CliError(EXIT.usage, message)
}

/** Parses --env: NAME=VALUE, or NAME for its value in this environment. Collects repeated options. */
export function parseEnvOption(text: string, previous: Record<string, string> = {}): Record<string, string> {
  const [name = '', ...rest] = text.split('=')
  if (!isEnvName(name)) throw new CliError(EXIT.usage, '--env must be NAME=VALUE or NAME.')
  const value = text.includes('=') ? rest.join('=') : process.env[name]
  if (value === undefined)
    throw new CliError(EXIT.usage, `${name} is not set in this environment. Use --env ${name}=VALUE.`)
  return { ...previous, [name]: value }
}
