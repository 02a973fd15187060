// How option values are read, and the options that several commands share.
import { InvalidArgumentError, Option } from 'commander'

/** As in shared/api/common.ts, which would bring zod: 30 ms of each start. */
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

export type JsonOption = { json?: boolean }
export type WaitOption = { wait: boolean }

export const jsonOption = () => new Option('--json', "print the API's own object")
export const noWaitOption = () => new Option('--no-wait', 'do not wait until it is done')

export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It is a whole number.')
  return Number(text)
}

export function positiveNumber(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('It is a number.')
  return value
}

/** K=V, or K alone for its value here; collects. */
export function variable(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [name = '', ...rest] = text.split('=')
  if (!ENV_NAME.test(name)) throw new InvalidArgumentError('It is NAME=VALUE.')
  const value = text.includes('=') ? rest.join('=') : process.env[name]
  if (value === undefined) throw new InvalidArgumentError(`${name} is not set here: give ${name}=VALUE.`)
  return { ...before, [name]: value }
}
