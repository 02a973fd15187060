// Options that several commands share, and parsers of option values.
import { Option } from 'commander'
import { CliError, EXIT } from './exit-codes.ts'

/** Copied from shared/api/common.ts: importing it loads zod, which adds 30 ms to every start. */
const ENV_NAME_PATTERN = /^[A-Za-z_][A-Za-z0-9_]*$/

export type JsonOption = { json?: boolean }
export type WaitOption = { wait: boolean }
export type QuietOption = { quiet?: boolean }

export const createJsonOption = (description = 'print the result as JSON') =>
  new Option('--json', description)
export const createNoWaitOption = () =>
  new Option('--no-wait', 'return immediately, do not wait for completion')

export const createQuietOption = () => new Option('-q, --quiet', 'print no progress, only results and errors')

export type Range = { min: number; max: number }

/** For an option that takes an integer. `option` is as typed, such as --ttl. */
export function createIntegerParser(option: string, { min, max }: Range): (text: string) => number {
  return (text) =>
    requireInRange(
      /^\d{1,9}$/.test(text) ? Number(text) : null,
      { min, max },
      `${option} must be an integer between ${min} and ${max}.`,
    )
}

/** For an option that takes a number with or without a fraction. */
export function createNumberParser(option: string, { min, max }: Range): (text: string) => number {
  return (text) =>
    requireInRange(
      text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : null,
      { min, max },
      `${option} must be a number between ${min} and ${max}.`,
    )
}

/** @param value null: not a number */
function requireInRange(value: number | null, { min, max }: Range, message: string): number {
  if (value !== null && value >= min && value <= max) return value
  throw new CliError(EXIT.usage, message)
}

/** Parses --env: NAME=VALUE, or NAME for its value in this environment. Collects repeated options. */
export function parseEnvOption(text: string, previous: Record<string, string> = {}): Record<string, string> {
  const [name = '', ...rest] = text.split('=')
  if (!ENV_NAME_PATTERN.test(name)) throw new CliError(EXIT.usage, '--env must be NAME=VALUE or NAME.')
  const value = text.includes('=') ? rest.join('=') : process.env[name]
  if (value === undefined)
    throw new CliError(EXIT.usage, `${name} is not set in this environment. Use --env ${name}=VALUE.`)
  return { ...previous, [name]: value }
}
