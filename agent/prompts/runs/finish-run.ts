// Finishes a run whose coding agent has exited: cleans up after the coding agent, and computes the result.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { bytesOnDisk } from '../../exec/detached/log-bounds.ts'
import { getTimesPath } from '../../exec/detached/output-times.ts'
import { readTail } from '../../exec/detached/responses.ts'
import type { DetachedProcess, DetachedProcesses, ProcessExit } from '../../exec/detached/types.ts'
import type { LogPosition } from '../events/event-decoder.ts'
import type { Provider } from '../providers/types.ts'
import { removeTree } from './remove-tree.ts'
import { getTmpDir, type RecordedResult, type RunRecord } from './run-record.ts'
import { isTerminated, resolveStatus, STOP_SIGNAL_MS } from './run-status.ts'

/** The interval at which the agent checks for a stop of the box, after a coding agent was terminated without a request. */
const STOP_POLL_MS = 20

export type ExitedRun = {
  record: RunRecord
  runDir: string
  detachedProcess: DetachedProcess
  exit: ProcessExit
  /** The end of the decoded output. */
  position: LogPosition
  processes: Pick<DetachedProcesses, 'kill'>
  provider: Pick<Provider, 'resolveUnfinished'>
  /** When the box began to stop; null: the box does not stop. Milliseconds since the epoch. */
  getStopRequestedAt(): number | null
  clock: Clock
  log: Logger
}

/** Resolves with null when the signal aborts: the next agent computes the result. */
export async function finishRun(run: ExitedRun, signal: AbortSignal): Promise<RecordedResult | null> {
  const { record, runDir, log } = run
  await terminateRemaining(run)
  await waitForStopRequest(run, signal)
  if (signal.aborted) return null
  await removeTree(getTmpDir(runDir)).catch((err: unknown) =>
    log.warn({ err, runId: record.id }, 'failed to delete the temporary files of a run'),
  )
  return computeResult(run)
}

/** Terminates what the tools of the coding agent left running, unless the coding agent exited by itself. */
async function terminateRemaining({ record, exit, processes, detachedProcess, log }: ExitedRun) {
  const { interrupt, conclusion } = record
  const isInterrupted = interrupt !== null && (exit.finishedAt ?? Infinity) >= interrupt.requestedAt
  if (!isInterrupted && conclusion === null && exit.status !== 'lost') return
  await processes
    .kill(detachedProcess.processId)
    .catch((err: unknown) => log.error({ err, runId: record.id }, 'failed to end the processes of a run'))
}

/** Waits until the agent has handled its signal, if the box may be stopping. */
async function waitForStopRequest(run: ExitedRun, signal: AbortSignal): Promise<void> {
  const { record, exit, clock, getStopRequestedAt } = run
  if (!isTerminated(exit) || record.interrupt !== null || record.conclusion !== null) return
  const elapsedMs = Math.max(0, clock.now() - (exit.finishedAt ?? 0))
  const deadline = performance.now() + STOP_SIGNAL_MS - elapsedMs
  while (performance.now() < deadline && getStopRequestedAt() === null && !signal.aborted)
    await sleep(STOP_POLL_MS)
}

async function computeResult(run: ExitedRun): Promise<RecordedResult> {
  const { record, exit, detachedProcess, provider } = run
  const { offset, seq, state } = run.position
  const { pid, logs } = detachedProcess
  const { status, error } = resolveStatus({
    exit,
    state,
    conclusion: record.conclusion,
    interrupt: record.interrupt,
    minutes: record.minutes,
    stopRequestedAt: run.getStopRequestedAt(),
    unfinished: provider.resolveUnfinished(state),
    stderr: await readStderr(run),
  })
  return {
    status,
    error,
    exitCode: exit.exitCode,
    pid,
    finishedAt: findEndTime(run),
    sessionId: state.sessionId,
    eventCount: seq,
    logEnd: offset,
    logBytes: [logs.stdout.path, logs.stderr.path]
      .flatMap((path) => [path, getTimesPath(path)])
      .reduce((sum, path) => sum + bytesOnDisk(path), 0),
  }
}

async function readStderr({ detachedProcess, record, log }: ExitedRun): Promise<string> {
  try {
    const { text } = await readTail(detachedProcess.logs.stderr, LIMITS.promptStderrBytes)
    return text
  } catch (err) {
    log.error({ err, runId: record.id }, 'failed to read the standard error output of a run')
    return ''
  }
}

/**
 * The end of a run is not before its last event: under the shell runner, the agent records the time of output when the
 * agent notices the output. The exit of a lost process has no time.
 */
function findEndTime({ record, exit, position, detachedProcess, clock }: ExitedRun): number {
  const times = detachedProcess.logs.stdout.openTimes()
  const lastOutputAt = times?.limitChunk(Math.max(0, position.offset - 1), 1, 'base64').at ?? null
  if (lastOutputAt === null) return exit.finishedAt ?? clock.now()
  return Math.max(lastOutputAt, exit.finishedAt ?? record.startedAt)
}
