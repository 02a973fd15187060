// Responses with the output of a run: GET /prompts/{runId} and GET /prompts/{runId}/events.
import type { PromptStatus } from '../../../shared/api/prompts.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { readTail } from '../../exec/detached/responses.ts'
import type { DetachedProcess } from '../../exec/detached/types.ts'
import { readCheckpoints } from '../events/checkpoints.ts'
import { type EventPage, type PageSource, readEventPage } from '../events/event-page.ts'
import type { LogFollower } from '../events/log-follower.ts'
import { createOutputTimeLookup } from '../events/output-time-lookup.ts'
import type { Provider } from '../providers/types.ts'
import type { RunState } from '../types.ts'
import { toRun } from './run-fields.ts'
import { type RunRecord, readPrompt } from './run-record.ts'

export type RunOutput = {
  runDir: string
  provider: Provider
  /** undefined: no process was started, or its output is deleted. */
  detachedProcess: DetachedProcess | undefined
  /** null when the run has ended. */
  follower: LogFollower | null
  record: RunRecord
}
type PageOptions = { after: number; limit: number; signal: AbortSignal }

export async function readRunStatus(
  state: RunState,
  { runDir, detachedProcess }: Pick<RunOutput, 'runDir' | 'detachedProcess'>,
): Promise<PromptStatus> {
  const tail =
    detachedProcess && (await asApiError(readTail(detachedProcess.logs.stderr, LIMITS.promptStderrBytes)))
  return {
    ok: true,
    type: 'prompt.status',
    run: toRun(state, readPrompt(runDir)),
    stderr: tail?.text ?? '',
    stderrTruncated: tail?.truncated ?? false,
    logPath: detachedProcess?.logs.stdout.path ?? '',
  }
}

export async function readRunEvents(output: RunOutput, options: PageOptions): Promise<EventPage> {
  const source = openSource(output)
  if (source === null) return { events: [], next: options.after, reachedEnd: true }
  return asApiError(readEventPage(source, options))
}

function openSource({ runDir, provider, detachedProcess, follower, record }: RunOutput): PageSource | null {
  if (detachedProcess === undefined) return null
  const output = detachedProcess.logs.stdout
  const common = { output, provider, startedAt: record.startedAt }
  if (follower !== null) {
    const { times, position } = follower
    return { ...common, times, starts: follower.getStarts(), end: { ...position, isFinal: false } }
  }
  const { logEnd = 0, eventCount = 0 } = record.result ?? {}
  return {
    ...common,
    times: createOutputTimeLookup(output),
    starts: readCheckpoints(runDir),
    end: { offset: logEnd, seq: eventCount, isFinal: true },
  }
}

async function asApiError<T>(read: Promise<T>): Promise<T> {
  try {
    return await read
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
      throw new ApiError('not_found', 'The output of this run has been deleted.')
    throw error
  }
}
