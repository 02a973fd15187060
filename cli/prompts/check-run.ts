// Checks the run in a response of the coordinator.
import type { Run } from '../../shared/api/prompts.ts'
import {
  checkFields,
  type FieldValidators,
  invalidDataError,
  isString,
  isStringOrNull,
} from '../connection/server-data.ts'

export const isRecord = (value: unknown): boolean => typeof value === 'object' && value !== null

/** The fields that `box` uses. */
const RUN_VALIDATORS: FieldValidators = {
  id: isString,
  status: isString,
  error: isStringOrNull,
  provider: isString,
  conversationId: isString,
}

/** @throws CliError when the coordinator sends something else */
export function checkRun(run: unknown): asserts run is Run {
  if (!isRecord(run)) throw invalidDataError('a response without a run')
  checkFields('a run', run as Record<string, unknown>, RUN_VALIDATORS)
}
