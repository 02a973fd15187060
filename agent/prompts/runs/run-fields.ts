// Response fields of a run.
import type { Run } from '../../../shared/api/prompts.ts'
import { toTimestamp, toTimestampOrNull } from '../../../shared/clock.ts'
import type { RunState } from '../types.ts'
import type { RunRecord } from './run-record.ts'

/** @param prompt the whole prompt. Default: its start */
export function toRun(
  { promptPreview, startedAt, finishedAt, sequence: _, ...fields }: RunState,
  prompt = promptPreview,
): Run {
  return { ...fields, startedAt: toTimestamp(startedAt), finishedAt: toTimestampOrNull(finishedAt), prompt }
}

/** The state of a run in progress, or of an ended one. */
export function toRunState({
  minutes: _,
  interrupt: __,
  conclusion: ___,
  result,
  ...request
}: RunRecord): RunState {
  if (result === null)
    return {
      ...request,
      status: 'running',
      error: null,
      exitCode: null,
      pid: null,
      finishedAt: null,
      sessionId: null,
      eventCount: 0,
    }
  const { logEnd: _end, logBytes: _bytes, ...end } = result
  return { ...request, ...end }
}
