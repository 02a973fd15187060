// Waiting for what a request set going: a box's state, or an operation. Says each change as it happens.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Box, BoxDetail, ObservedState } from '../shared/api/boxes.ts'
import type { Operation } from '../shared/api/operations.ts'
import { EXIT, Failure } from './exit-codes.ts'
import { printable, say } from './output.ts'
import type { Session } from './session.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 1000
const GIVE_UP_MS = 10 * 60 * 1000
/** A coordinator that restarts is away for a moment; what it was asked to do goes on. */
const AWAY_MS = 30 * 1000

/** Asks until `look` gives something else than null. */
async function poll<T>({ signal }: Session, what: string, look: () => Promise<T | null>): Promise<T> {
  const started = Date.now()
  let lastAnswer = started
  let pause = FIRST_PAUSE_MS
  for (;;) {
    try {
      const found = await look()
      if (found !== null) return found
      lastAnswer = Date.now()
    } catch (error) {
      const away = error instanceof Failure && error.exitCode === EXIT.unreachable
      if (!away || Date.now() - lastAnswer > AWAY_MS) throw error
    }
    if (Date.now() - started > GIVE_UP_MS)
      throw new Failure(
        EXIT.refused,
        `${what} takes longer than 10 minutes; it goes on. \`box ls\` shows it.`,
      )
    await sleep(pause, undefined, { signal })
    pause = Math.min(pause * 1.5, LONGEST_PAUSE_MS)
  }
}

/** Settles with the box once it is in `wanted`. Throws Failure when it failed or is wanted in another state since. */
export async function waitForState(
  session: Session,
  box: Box,
  wanted: 'running' | 'suspended',
  talk: boolean,
): Promise<Box> {
  const name = box.hostname
  let said = ''
  return poll(session, name, async () => {
    const detail = await session.client.boxDetail(box.id)
    const line = stateLine(detail)
    if (talk && line !== said) say(`${name}: ${line}`)
    said = line
    const { observedState, desiredState } = detail.box
    if (observedState === wanted) return detail.box
    if (observedState === 'provision_failed') {
      const why = detail.job?.lastError ?? detail.events[0]?.reason ?? 'no reason was given'
      const todo = `\`box rm ${name}\`, and create another.`
      throw new Failure(EXIT.refused, `${name} could not be made: ${printable(why)}. ${todo}`)
    }
    if (desiredState !== wanted)
      throw new Failure(
        EXIT.refused,
        `${name} is no longer to be ${wanted}: someone wants it ${desiredState}.`,
      )
    return null
  })
}

function stateLine({ box, job }: BoxDetail): string {
  const state: ObservedState = box.observedState
  return job?.lastError ? `${state}, attempt ${job.attempt} failed: ${printable(job.lastError)}` : state
}

/** Settles with the operation once it is completed; throws Failure when it failed. */
export async function waitForOperation(session: Session, operation: Operation): Promise<Operation> {
  return poll(session, 'The operation', async () => {
    const path = `/operations/${encodeURIComponent(operation.id)}`
    const answer = await session.client.control<{ operation: Operation }>('GET', path)
    const { status, error } = answer.operation
    if (status === 'failed')
      throw new Failure(EXIT.refused, `It failed: ${printable(error ?? 'no reason was given')}.`)
    return status === 'completed' ? answer.operation : null
  })
}
