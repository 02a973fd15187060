// The conditions of box wait: states of a box, and the end of its current change.
import type { BoxDetail } from '../../shared/api/boxes.ts'
import { OBSERVED_STATES } from '../../shared/field-values.ts'
import { boxCommand } from '../command-name.ts'
import { isSuspended } from '../output/box-state.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { throwIfProvisionFailed } from './wait-for-box.ts'

/** `stopped`: suspended without processes; `deleted`: terminated. */
export const BOX_TARGETS = [...OBSERVED_STATES, 'stopped', 'deleted'] as const
export type BoxTarget = (typeof BOX_TARGETS)[number]

const DELETION_TARGETS: readonly BoxTarget[] = ['deleted', 'terminating', 'terminated']

/** Jobs that do not change the state which a user requested. */
const BACKGROUND_JOBS = ['stop', 'sleep', 'clean_up']

/** @param target null: the end of the current change @throws CliError when the target cannot be reached */
export function isTargetReached(detail: BoxDetail, target: BoxTarget | null): boolean {
  if (target === null) return isSettled(detail)
  if (isInState(detail, target)) return true
  const { box } = detail
  const isDeleted = box.observedState === 'terminated' || box.desiredState === 'terminated'
  if (isDeleted && !DELETION_TARGETS.includes(target))
    throw new CliError(
      EXIT.failed,
      `${sanitize(box.hostname)} will not become ${target}: it was deleted. \`${boxCommand()} ls\` lists the boxes.`,
    )
  if (target === 'running') throwIfProvisionFailed(detail)
  return false
}

function isInState({ box: { observedState, suspendedAs } }: BoxDetail, target: BoxTarget): boolean {
  switch (target) {
    case 'deleted':
      return observedState === 'terminated'
    case 'stopped':
      return isSuspended(observedState) && suspendedAs !== 'frozen'
    case 'suspended':
      return isSuspended(observedState)
    default:
      return observedState === target
  }
}

function isSettled(detail: BoxDetail): boolean {
  throwIfProvisionFailed(detail)
  const { box, job } = detail
  if (box.desiredRegion !== null || (job !== null && !BACKGROUND_JOBS.includes(job.op))) return false
  return isInState(detail, box.desiredState)
}
