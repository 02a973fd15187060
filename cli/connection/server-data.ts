// Checks data from the coordinator. Own validators rather than zod, whose import adds 30 ms to every start.
import { CliError, EXIT } from '../output/exit-codes.ts'

/** Each required field has a function that returns whether its value is valid. */
export type FieldValidators = Record<string, (value: unknown) => boolean>

/** @param problem such as 'an event that is not a JSON object' */
export const invalidDataError = (problem: string): CliError =>
  createVersionError(`The coordinator sent ${problem}.`)

/** @param problem a sentence */
export const createVersionError = (problem: string): CliError =>
  new CliError(
    EXIT.failed,
    `${problem} Check that box and the coordinator have the same version, and that no proxy changes the response.`,
  )

/** @param kind such as 'an event' @throws CliError */
export function parseObject(json: string, kind: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // Thrown below, without the parser's message.
  }
  throw invalidDataError(`${kind} that is not a JSON object`)
}

/** @param name such as 'the event exit' @throws CliError */
export function checkFields(name: string, data: Record<string, unknown>, validators: FieldValidators): void {
  for (const [field, isValid] of Object.entries(validators))
    if (!isValid(data[field])) throw invalidDataError(`${name} without a valid ${field}`)
}

export function isString(value: unknown): boolean {
  return typeof value === 'string'
}

export function isOffset(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

export const isIntegerOrNull = (value: unknown): boolean => value === null || Number.isInteger(value)
export const isStringOrNull = (value: unknown): boolean => value === null || isString(value)
