// Adds what to do with this command to the API's refusals.
import type { Box } from '../../shared/api/boxes.ts'
import { boxCommand } from '../command-name.ts'
import { CliError } from '../output/exit-codes.ts'

/** null: no hint. A function gets the message of the error. */
export type Hint = string | null | ((message: string) => string | null)

/** The same promise; an error with one of the codes gets the hint before its code. */
export function addHints<T>(response: Promise<T>, hints: Record<string, Hint>): Promise<T> {
  return response.catch((error) => {
    throw error instanceof CliError ? addHint(error, hints) : error
  })
}

/** The same error, or one with the hint for its code. */
export function addHint(error: CliError, hints: Record<string, Hint>): CliError {
  const { code, message, exitCode, fields } = error
  if (code === null) return error
  const found = hints[code]
  const hint = typeof found === 'function' ? found(message) : found
  if (!hint) return error
  const suffix = ` (${code})`
  const text = message.endsWith(suffix) ? message.slice(0, -suffix.length) : message
  return new CliError(exitCode, `${text} ${hint}${suffix}`, { code, fields, cause: error })
}

export const TIER_TOO_SMALL_HINTS = {
  restore_tier_not_allowed: 'Choose the tier with --tier.',
}

export const IMAGE_HINTS = { images_unavailable: '`box regions` lists what each region can do.' }

export const SNAPSHOT_LIMIT_HINTS = { snapshot_limit: '`box snapshots rm` deletes snapshots.' }

/** What to do when the service refuses a change because another one is in progress; null: it has another reason. */
export const getWaitHint = (box: Box): string | null =>
  isChanging(box) ? `\`${boxCommand()} wait ${box.hostname}\` waits for the current change.` : null

const isChanging = ({ observedState, desiredState, desiredRegion }: Box): boolean =>
  desiredRegion !== null ||
  (observedState !== desiredState && !(observedState === 'deep_sleep' && desiredState === 'suspended'))
