// One run in progress: follows its output, interrupts it, and records how it ended.
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { bytesOnDisk } from '../../exec/detached/log-bounds.ts'
import { getTimesPath } from '../../exec/detached/output-times.ts'
import { readTail } from '../../exec/detached/responses.ts'
import type { DetachedProcess, DetachedProcesses, ProcessExit } from '../../exec/detached/types.ts'
import { type FollowerStart, followLog, type LogFollower } from '../events/log-follower.ts'
import type { Provider } from '../providers/types.ts'
import type { RunState } from '../types.ts'
import { type InterruptSignal, interruptProcess, waitForExit } from './interrupt-process.ts'
import { removeTree } from './remove-tree.ts'
import { toRunState } from './run-fields.ts'
import { getTmpDir, type RunRecord, writeRecord } from './run-record.ts'
import { isTerminated, resolveStatus, STOP_SIGNAL_MS } from './run-status.ts'

/** Only after a coding agent was terminated without a request. */
const STOP_POLL_MS = 20

export type ActiveRunOptions = {
  record: RunRecord
  runDir: string
  detachedProcess: DetachedProcess
  processes: DetachedProcesses
  provider: Provider
  start: FollowerStart
  checkpointBytes: number
  /** When the box began to stop; null: it does not. Milliseconds since the epoch. */
  getStopRequestedAt(): number | null
  clock: Clock
  log: FastifyBaseLogger
  /** Called after each change of `state` until the run ends. */
  onChange(state: RunState): void
}

export type ActiveRun = {
  readonly state: RunState
  readonly follower: LogFollower
  /** Resolves with the record when the run has ended and the record is durable; with null after close(). */
  readonly ended: Promise<RunRecord | null>
  /** Resolves when the run has ended. `signal`: null when the CLI had exited already. */
  interrupt(cause: string): Promise<InterruptSignal | null>
  /** The CLI keeps running. */
  close(): Promise<void>
}

export function followRun(options: ActiveRunOptions): ActiveRun {
  const { runDir, detachedProcess, processes, provider, clock, log, onChange } = options
  const { processId, pid, logs } = detachedProcess
  let { record } = options
  const { position } = options.start
  let state: RunState = {
    ...toRunState(record),
    ...{ pid, sessionId: position.state.sessionId, eventCount: position.seq },
  }
  let interruption: Promise<InterruptSignal | null> | undefined
  const closing = new AbortController()

  // One write at a time: the file is replaced.
  let lastWrite = Promise.resolve()
  const save = () => {
    lastWrite = lastWrite
      .then(() => writeRecord(runDir, record))
      // A restarted agent computes the result again.
      .catch((err: unknown) => log.error({ err, runId: record.id }, 'failed to write the record of a run'))
    return lastWrite
  }

  const follower = followLog({
    ...{ detachedProcess, provider, runDir, log, start: options.start },
    checkpointBytes: options.checkpointBytes,
    onProgress() {
      const { seq, state: mapped } = follower.position
      if (seq === state.eventCount && mapped.sessionId === state.sessionId) return
      state = { ...state, eventCount: seq, sessionId: mapped.sessionId }
      onChange(state)
    },
  })

  /** Ends what the tools of an interrupted coding agent left running, or of one whose runner was killed. */
  async function sweep(exit: ProcessExit): Promise<void> {
    const { interrupt } = record
    const isInterrupted = interrupt !== null && (exit.finishedAt ?? Infinity) >= interrupt.requestedAt
    if (!isInterrupted && exit.status !== 'lost') return
    await processes
      .kill(processId)
      .catch((err: unknown) => log.error({ err, runId: record.id }, 'failed to end the processes of a run'))
  }

  /** The box may be stopping, which the agent has not noticed yet. */
  async function waitForStopRequest(exit: ProcessExit): Promise<void> {
    if (!isTerminated(exit) || record.interrupt !== null) return
    const elapsedMs = Math.max(0, clock.now() - (exit.finishedAt ?? 0))
    const deadline = performance.now() + STOP_SIGNAL_MS - elapsedMs
    while (performance.now() < deadline && options.getStopRequestedAt() === null && !closing.signal.aborted)
      await sleep(STOP_POLL_MS)
  }

  /** null: the agent stops, and the next one finds out why the run ended. */
  async function finish(exit: ProcessExit): Promise<RunRecord | null> {
    await sweep(exit)
    await waitForStopRequest(exit)
    if (closing.signal.aborted) return null
    await removeTree(getTmpDir(runDir)).catch((err: unknown) =>
      log.warn({ err, runId: record.id }, 'failed to delete the temporary files of a run'),
    )
    const { offset, seq, state: mapped } = follower.position
    const resolved = resolveStatus({
      ...{ exit, state: mapped, interrupt: record.interrupt, minutes: record.minutes },
      stopRequestedAt: options.getStopRequestedAt(),
      unfinished: provider.resolveUnfinished(mapped),
      stderr: await readStderr(),
    })
    const result = {
      ...{ ...resolved, exitCode: exit.exitCode, pid },
      finishedAt: findEndTime(exit),
      ...{ sessionId: mapped.sessionId, eventCount: seq, logEnd: offset },
      logBytes: [logs.stdout.path, logs.stderr.path]
        .flatMap((path) => [path, getTimesPath(path)])
        .reduce((sum, path) => sum + bytesOnDisk(path), 0),
    }
    record = { ...record, result }
    await save()
    return record
  }

  const readStderr = () =>
    readTail(logs.stderr, LIMITS.promptStderrBytes).then(
      ({ text }) => text,
      (err: unknown) => {
        log.error({ err, runId: record.id }, 'failed to read the standard error output of a run')
        return ''
      },
    )

  /**
   * Not before the last event: under the shell runner, the agent records the time of output when it notices the output. The
   * exit of a lost process has no time.
   */
  function findEndTime({ finishedAt }: ProcessExit): number {
    const { offset } = follower.position
    const lastOutputAt = logs.stdout.openTimes()?.limitChunk(Math.max(0, offset - 1), 1, 'base64').at ?? null
    if (lastOutputAt === null) return finishedAt ?? clock.now()
    return Math.max(lastOutputAt, finishedAt ?? record.startedAt)
  }

  async function waitForEnd(): Promise<RunRecord | null> {
    await follower.finished.catch((err: unknown) => {
      // For example, the log was deleted. The events so far count.
      log.error({ err, runId: record.id }, 'failed to read the output of a run')
      return waitForExit(detachedProcess, null, closing.signal)
    })
    const { exit } = detachedProcess
    return exit === null || closing.signal.aborted ? null : finish(exit)
  }
  const ended = waitForEnd()

  async function interruptOnce(cause: string): Promise<InterruptSignal | null> {
    if (detachedProcess.exit === null && record.interrupt === null) {
      record = { ...record, interrupt: { requestedAt: clock.now(), cause } }
      await save()
    }
    const first = provider.interruptSignal
    const signal = await interruptProcess(processes, detachedProcess, { first, signal: closing.signal })
    if ((await ended) === null) throw closing.signal.reason
    return signal
  }
  const interrupt = (cause: string) => {
    interruption ??= interruptOnce(cause).finally(() => {
      interruption = undefined
    })
    return interruption
  }
  // The previous agent was killed during the interrupt.
  if (record.interrupt !== null && detachedProcess.exit === null)
    interrupt(record.interrupt.cause).catch((err: unknown) => {
      if (!closing.signal.aborted) log.error({ err, runId: record.id }, 'failed to interrupt a run')
    })

  return {
    get state() {
      return state
    },
    follower,
    ended,
    interrupt,
    async close() {
      closing.abort(new ApiError('exec_failed', 'The agent is stopping. Try again.'))
      follower.close()
      await Promise.allSettled([ended, interruption])
      await lastWrite
    },
  }
}
