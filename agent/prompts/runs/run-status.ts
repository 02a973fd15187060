// Decides how a run ended: an interrupt request, the time limit, or the last final event. Pure.

import { constants } from 'node:os'
import { stripVTControlCharacters } from 'node:util'
import type { RunStatus } from '../../../shared/api/prompts.ts'
import { formatCount } from '../../../shared/format-count.ts'
import type { ProcessExit } from '../../exec/detached/types.ts'
import { boundedText } from '../providers/json-fields.ts'
import type { MapperState, Outcome } from '../providers/types.ts'

export type RunEnd = {
  exit: ProcessExit
  /** What a coding agent had reported that did not exit; null: it exited by itself, or for another reason. */
  conclusion: Outcome | null
  /** The interrupt request; null: there was none. Instants are milliseconds since the epoch. */
  interrupt: { requestedAt: number; cause: string } | null
  /** When the box began to stop; null: it did not. */
  stopRequestedAt: number | null
  /** The state after the last line of the output. */
  state: MapperState
  /** The result of resolveUnfinished(). Ignored when there is a final event. */
  unfinished: Outcome | null
  /** The end of the standard error output. */
  stderr: string
  /** The time limit of the run. */
  minutes: number
}
export type RunResult = { status: Exclude<RunStatus, 'running'>; error: string | null }

export const MAX_ERROR_CHARS = 4096
export const STOPPED_MESSAGE = 'The box stopped during the run.'
export const NO_RESULT_MESSAGE = 'The coding agent ended without a result.'

/**
 * When a box stops, its processes get SIGTERM at the same time. A coding agent that exits at once may exit before the agent
 * has handled its own signal, but at most this long before.
 */
export const STOP_SIGNAL_MS = 1000

/** Whether SIGTERM ended the coding agent, or it exited because of SIGTERM. */
export const isTerminated = ({ status, signal, exitCode }: ProcessExit): boolean =>
  status !== 'timed_out' && (signal === 'TERM' || exitCode === 128 + constants.signals.SIGTERM)

export function resolveStatus(end: RunEnd): RunResult {
  const { exit, conclusion, interrupt, stopRequestedAt, state, minutes } = end
  if (conclusion !== null) return toResult(conclusion)
  // An unknown time is after the request: the agent requests nothing of a process whose exit is known.
  const isAfter = (requestedAt: number) => exit.finishedAt === null || exit.finishedAt >= requestedAt
  if (interrupt !== null && isAfter(interrupt.requestedAt))
    return { status: 'interrupted', error: interrupt.cause }
  if (exit.status === 'timed_out')
    return failed(`The run exceeded its time limit of ${formatCount(minutes, 'minute')}.`)
  const outcome = findOutcome(state) ?? end.unfinished
  if (outcome?.status === 'done') return toResult(outcome)
  const toleranceMs = isTerminated(exit) ? STOP_SIGNAL_MS : 0
  if (stopRequestedAt !== null && isAfter(stopRequestedAt - toleranceMs))
    return { status: 'interrupted', error: STOPPED_MESSAGE }
  if (outcome !== null) return toResult(outcome)
  if (exit.status === 'lost') return failed(STOPPED_MESSAGE)
  // The omitted line may have been the final event.
  if (exit.exitCode === 0 && state.hasContent && state.isLastLineOmitted)
    return { status: 'done', error: null }
  return failed(describeExit(end))
}

/** The success of a turn is not that of the turn that followed. */
export const findOutcome = ({ outcome, isContinued }: MapperState): Outcome | null =>
  isContinued && outcome?.status === 'done' ? null : outcome

const toResult = (outcome: Outcome): RunResult =>
  outcome.status === 'done' ? { status: 'done', error: null } : failed(outcome.message)

const failed = (error: string): RunResult => ({
  status: 'failed',
  error: boundedText(error, MAX_ERROR_CHARS),
})

function describeExit({ exit, stderr }: RunEnd): string {
  const text = stripVTControlCharacters(stderr).trim()
  if (exit.exitCode === 0) return text === '' ? NO_RESULT_MESSAGE : `${NO_RESULT_MESSAGE}\n${text}`
  if (text !== '') return text
  if (exit.signal !== null) return `The coding agent was terminated by signal ${exit.signal}.`
  return `The coding agent exited with status ${exit.exitCode} and without an error message.`
}
