// Waits for a box to reach a state. Shows each state change.
import type { Box, BoxDetail } from '../../shared/api/boxes.ts'
import { boxCommand } from '../command-name.ts'
import { formatProgress, isSuspended } from '../output/box-state.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { type Progress, showStatus } from '../output/status-line.ts'
import { pollUntil, type WaitSession } from './poll-until.ts'

export type BoxCondition = {
  /** The subject of the timeout message. */
  subject: string
  timeoutMs?: number
  createTimeoutError?(): CliError
  /** false: not yet. @throws CliError when the condition cannot be met */
  isMet(detail: BoxDetail): boolean
}

/** Returns the box that meets the condition. @throws CliError, also on timeout */
export function waitForBox(
  session: WaitSession,
  { id, hostname }: Box,
  progress: Progress,
  { isMet, ...condition }: BoxCondition,
): Promise<Box> {
  return showStatus(progress, (update) =>
    pollUntil(session, {
      ...condition,
      async getResult() {
        const detail = await session.client.getBoxDetail(id)
        update(`${sanitize(hostname)}: ${formatProgress(detail)}`)
        return isMet(detail) ? detail.box : null
      },
    }),
  )
}

/**
 * Throws CliError on timeout, when provisioning failed, or when another request has changed the desired state.
 * @param isTemporary the caller deletes the box
 */
export function waitForState(
  session: WaitSession,
  box: Box,
  targetState: 'running' | 'suspended',
  progress: Progress,
  { isTemporary = false }: { isTemporary?: boolean } = {},
): Promise<Box> {
  const name = sanitize(box.hostname)
  return waitForBox(session, box, progress, {
    subject: `The state change of ${name}`,
    isMet(detail) {
      const { observedState, desiredState } = detail.box
      if (observedState === targetState || (targetState === 'suspended' && isSuspended(observedState)))
        return true
      throwIfProvisionFailed(detail, isTemporary)
      if (desiredState === targetState) return false
      throw new CliError(
        EXIT.failed,
        `${name} will not become ${targetState}: another request set the desired state to ${desiredState}. Check it with \`${boxCommand()} show ${name}\`.`,
      )
    },
  })
}

/** A coordinator of another version may have other operations. */
export const hasJob = ({ job }: { job: { op: string } | null }, op: string): boolean => job?.op === op

export function throwIfProvisionFailed({ box, job, events }: BoxDetail, isTemporary = false): void {
  if (box.observedState !== 'provision_failed') return
  const name = sanitize(box.hostname)
  const reason = (job?.lastError ?? events[0]?.reason ?? 'no reason was given').replace(/\.$/, '')
  throw new CliError(
    EXIT.failed,
    `Could not create ${name}: ${sanitize(reason)}.${isTemporary ? '' : ` Delete it with \`${boxCommand()} rm ${name}\` and create another.`}`,
  )
}
