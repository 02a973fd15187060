// The state of a box as text.
import type { Box, BoxDetail, ObservedState } from '../../shared/api/boxes.ts'
import { colorize, getStateColor } from './colors.ts'
import { sanitize } from './print.ts'

/** A box that is suspended for a long time is put to deep sleep. */
export const isSuspended = (state: ObservedState): boolean => state === 'suspended' || state === 'deep_sleep'

/** Such as `suspended (frozen)`, for a box whose processes keep their memory. */
export const formatBoxState = ({
  observedState,
  suspendedAs,
}: Pick<Box, 'observedState' | 'suspendedAs'>): string =>
  suspendedAs === 'frozen' ? `${observedState} (frozen)` : observedState

/** Steps of a state change that take longer with more files. The other steps are short. */
const STEPS: Record<string, string> = {
  archive: 'packing the files',
  unpack: 'unpacking the files',
  capture: 'copying the files',
  transfer: 'transferring the files',
  import: 'unpacking the files',
  preserve: 'taking the final snapshot',
}

/** The state, the step of the state change in progress, and the failure of its last attempt. In colour on stderr. */
export function formatProgress({ box, job }: Pick<BoxDetail, 'box' | 'job'>): string {
  const state = colorize(sanitize(formatBoxState(box)), getStateColor(box.observedState), process.stderr)
  const step = STEPS[job?.step ?? '']
  const text = step === undefined ? state : `${state}, ${step}`
  return job?.lastError ? `${text}, attempt ${job.attempt} failed: ${sanitize(job.lastError)}` : text
}
