// Waits for a box to reach a state, or for an operation to complete. Shows each state change.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Box, BoxDetail } from '../shared/api/boxes.ts'
import type { Operation } from '../shared/api/operations.ts'
import { colorize, getStateColor } from './colors.ts'
import { boxCommand } from './command-name.ts'
import { CliError, EXIT } from './exit-codes.ts'
import { sanitize } from './output.ts'
import type { Session } from './session.ts'
import { type Progress, showStatus } from './status-line.ts'

type WaitSession = Pick<Session, 'client' | 'signal'>

const MIN_POLL_INTERVAL_MS = 100
const MAX_POLL_INTERVAL_MS = 1000
const TIMEOUT_MS = 10 * 60 * 1000
/** Maximum time without a response. Tolerates a coordinator restart, after which the state change continues. */
const UNREACHABLE_GRACE_MS = 30 * 1000

/**
 * Calls `getResult` until the result is not null. Throws CliError after TIMEOUT_MS.
 * @param subject the subject of the timeout message
 */
async function poll<T>(
  { signal }: WaitSession,
  subject: string,
  getResult: () => Promise<T | null>,
): Promise<T> {
  const startedAt = Date.now()
  let lastResponseAt = startedAt
  let interval = MIN_POLL_INTERVAL_MS
  for (;;) {
    try {
      const result = await getResult()
      if (result !== null) return result
      lastResponseAt = Date.now()
    } catch (error) {
      const isUnreachable = error instanceof CliError && error.exitCode === EXIT.unreachable
      if (!isUnreachable || Date.now() - lastResponseAt > UNREACHABLE_GRACE_MS) throw error
    }
    if (Date.now() - startedAt > TIMEOUT_MS)
      throw new CliError(
        EXIT.failed,
        `${subject} is not complete after 10 minutes and continues. Check the state with \`${boxCommand()} ls\`.`,
      )
    await sleep(interval, undefined, { signal })
    interval = Math.min(interval * 1.5, MAX_POLL_INTERVAL_MS)
  }
}

/** Throws CliError on timeout, when provisioning failed, or when another request has changed the desired state. */
export function waitForState(
  session: WaitSession,
  box: Box,
  targetState: 'running' | 'suspended',
  progress: Progress,
): Promise<Box> {
  const name = sanitize(box.hostname)
  return showStatus(progress, (update) =>
    poll(session, `The state change of ${name}`, async () => {
      const detail = await session.client.getBoxDetail(box.id)
      update(`${name}: ${formatState(detail)}`)
      const { observedState, desiredState } = detail.box
      if (observedState === targetState) return detail.box
      if (observedState === 'provision_failed') {
        const reason = detail.job?.lastError ?? detail.events[0]?.reason ?? 'no reason was given'
        throw new CliError(
          EXIT.failed,
          `Could not create ${name}: ${sanitize(reason)}. Delete it with \`${boxCommand()} rm ${name}\` and create another.`,
        )
      }
      if (desiredState !== targetState)
        throw new CliError(
          EXIT.failed,
          `${name} will not become ${targetState}: another request set the desired state to ${desiredState}. Check it with \`${boxCommand()} show ${name}\`.`,
        )
      return null
    }),
  )
}

function formatState({ box: { observedState }, job }: BoxDetail): string {
  const state = colorize(sanitize(observedState), getStateColor(observedState), process.stderr)
  if (!job?.lastError) return state
  return `${state}, attempt ${job.attempt} failed: ${sanitize(job.lastError)}`
}

/** Returns the completed operation, which is a deletion (spec §2.5). Throws CliError on timeout or failure. */
export function waitForDeletion(
  session: WaitSession,
  name: string,
  operation: Operation,
  progress: Progress,
): Promise<Operation> {
  return showStatus(progress, (update) => {
    update(`${name}: deleting`)
    return poll(session, `The deletion of ${name}`, async () => {
      const path = `/operations/${encodeURIComponent(operation.id)}`
      const response = await session.client.request<{ operation: Operation }>('GET', path)
      const { status, error } = response.operation
      if (status === 'failed')
        throw new CliError(
          EXIT.failed,
          `The deletion of ${name} failed: ${sanitize(error ?? 'no reason was given')}. Run \`${boxCommand()} rm ${name}\` again.`,
        )
      return status === 'completed' ? response.operation : null
    })
  })
}
