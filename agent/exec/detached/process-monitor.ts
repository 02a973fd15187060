// Monitors one detached process: detects the exit, enforces the time limit and terminates the process tree.
import { EventEmitter } from 'node:events'
import type { FastifyBaseLogger } from 'fastify'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import type { StartTimer } from '../../running-clock.ts'
import { isDead, readProcess } from '../process-table.ts'
import { SURVIVED_MESSAGE, sendSignal, type Termination, terminateTree } from '../terminate-tree.ts'
import { LOST_EXIT, resolveExit, type TerminationTimes } from './exit-status.ts'
import { openOutputLog } from './output-log.ts'
import {
  type ProcessMetadata,
  readExitRecord,
  readTerminationMarker,
  type StartRecord,
  type TerminationCause,
  writeMetadata,
  writeTerminationMarker,
} from './record.ts'
import type { DetachedProcess, ProcessExit, StreamName } from './types.ts'

export type ProcessMonitor = {
  readonly detachedProcess: DetachedProcess
  readonly meta: ProcessMetadata
  /** Detects an exit of the process. Costs two small file reads. */
  checkExit(): void
  /** Records that the process did not run for this time, for the time limit after a restart of the agent. */
  extendDeadline(frozenMs: number): Promise<void>
  /** Terminates the process tree. After the exit, terminates the remaining background processes. */
  kill(): Promise<KillResult>
  /** Sends a signal to the command's process group. False when the command has exited. */
  signal(name: NodeJS.Signals): boolean
  /** Stops monitoring. Resolves when a termination in progress has completed. */
  close(): Promise<void>
}

export type ProcessMonitorOptions = {
  dir: string
  meta: ProcessMetadata
  startRecord: StartRecord
  bootId: string
  clock: Clock
  /** For the time limit. */
  startTimer: StartTimer
  log: FastifyBaseLogger
  onExit(): void
}

type KillResult = { wasRunning: boolean; signal: Termination['signal'] }

/**
 * Time limit for the runner to write the exit record after SIGKILL. Longer than FULL_DISK_TIMEOUT_SECONDS in
 * native/run.c.
 */
const EXIT_RECORD_TIMEOUT_MS = 15_000

export function createProcessMonitor(options: ProcessMonitorOptions): ProcessMonitor {
  const { dir, startRecord, bootId, clock, startTimer, log, onExit } = options
  let { meta } = options
  const { processId, maxLogBytes } = meta
  const events = new EventEmitter<{ exit: [] }>().setMaxListeners(0)
  const finalSizes: Partial<Record<StreamName, number>> = {}
  const terminationTimes: TerminationTimes = {}
  // The shell runner is not a subreaper. Its other children write the exit record and must not be signalled.
  const subreaperOption = meta.runner === 'native' ? { subreaper: startRecord.runner } : {}
  let exit: ProcessExit | null = null
  let stopTimer: (() => void) | undefined
  let termination: Promise<KillResult> | undefined
  let closed = false

  const openLog = (name: StreamName) =>
    openOutputLog({
      path: `${dir}/${name}`,
      maxBytes: maxLogBytes,
      finalSize: () => finalSizes[name] ?? null,
    })
  const detachedProcess: DetachedProcess = {
    processId,
    pid: startRecord.command.pid,
    command: meta.command,
    cwd: meta.cwd,
    startedAt: meta.startedAt,
    record: meta.record,
    attached: meta.attached,
    dir,
    logs: { stdout: openLog('stdout'), stderr: openLog('stderr') },
    get exit() {
      return exit
    },
    onExit(callback) {
      const listener = () => callback()
      events.once('exit', listener)
      return () => events.off('exit', listener)
    },
  }

  const setExit = (result: ProcessExit) => {
    exit = result
    stopTimer?.()
    log.info({ processId, ...result }, 'detached process exited')
    events.emit('exit')
    onExit()
  }
  const applyExitRecord = (): boolean => {
    const record = readExitRecord(dir)
    if (record === undefined) return false
    Object.assign(finalSizes, record.sizes)
    if (record.outputIncomplete)
      log.error({ processId }, 'the runner could not write all output of a detached process')
    setExit(resolveExit(record, terminationTimes))
    return true
  }
  const checkExit = () => {
    if (exit !== null || closed || applyExitRecord()) return
    if (meta.bootId === bootId && isAlive(startRecord.runner)) return
    // The runner may have written the record after the first read and then exited.
    if (!applyExitRecord()) setExit(LOST_EXIT)
  }

  const waitForExit = async () => {
    if (exit !== null) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(
      () =>
        reject(
          new ApiError(
            'exec_failed',
            'The command was terminated, but its exit was not recorded. The disk may be full: free space and try again.',
          ),
        ),
      EXIT_RECORD_TIMEOUT_MS,
    )
    const unsubscribe = detachedProcess.onExit(resolve)
    await promise.finally(() => {
      clearTimeout(timer)
      unsubscribe()
    })
  }
  const terminateOnce = async (cause: TerminationCause): Promise<KillResult> => {
    terminationTimes[cause] ??= clock.now()
    await writeTerminationMarker(dir, cause, terminationTimes[cause]).catch((err: unknown) =>
      // Continue, so that a command can be terminated on a full disk. If the agent is killed now, the cause is lost.
      log.error({ err, processId, cause }, 'failed to write the termination marker'),
    )
    const { signal, survivors } = await terminateTree({
      ...startRecord.command,
      processId,
      ...subreaperOption,
    })
    if (survivors.length > 0) log.warn({ processId, survivors }, 'processes survived SIGKILL')
    if (survivors.includes(startRecord.command.pid)) throw new ApiError('exec_failed', SURVIVED_MESSAGE)
    checkExit()
    await waitForExit()
    return { wasRunning: signal !== null, signal }
  }
  const terminate = (cause: TerminationCause) => {
    termination ??= terminateOnce(cause).finally(() => {
      termination = undefined
    })
    return termination
  }
  const terminateInBackground = (cause: TerminationCause) =>
    terminate(cause).catch((err: unknown) =>
      log.error({ err, processId, cause }, 'failed to terminate a detached process'),
    )
  const onTimeLimit = () => {
    checkExit()
    if (exit === null && !closed) void terminateInBackground('timeout')
  }

  for (const cause of ['kill', 'timeout'] as const) {
    const requestedAt = readTerminationMarker(dir, cause)
    if (requestedAt !== undefined) terminationTimes[cause] = requestedAt
  }
  checkExit()
  if (exit === null) {
    // A previous agent was killed during a termination: complete the termination.
    const [interruptedCause] = Object.keys(terminationTimes) as TerminationCause[]
    if (interruptedCause !== undefined) void terminateInBackground(interruptedCause)
    // min(): a clock that was set back must not extend the limit.
    const { deadline, startedAt } = meta
    const remainingMs = deadline === null ? null : Math.min(deadline - clock.now(), deadline - startedAt)
    if (remainingMs !== null) stopTimer = startTimer(onTimeLimit, Math.max(0, remainingMs))
  }

  return {
    detachedProcess,
    get meta() {
      return meta
    },
    checkExit,
    async extendDeadline(frozenMs) {
      if (meta.deadline === null || exit !== null || closed) return
      meta = { ...meta, deadline: meta.deadline + Math.round(frozenMs) }
      await writeMetadata(dir, meta)
    },
    async kill() {
      checkExit()
      if (exit === null) return terminate('kill')
      // The kernel may have reused the pid: find background processes by environment marker and subreaper only.
      await terminateTree({ pid: startRecord.command.pid, startTime: 0, processId, ...subreaperOption })
      return { wasRunning: false, signal: null }
    },
    signal(name) {
      checkExit()
      if (exit !== null || !isAlive(startRecord.command)) return false
      // The command is the leader of its process group.
      return sendSignal(-startRecord.command.pid, name)
    },
    async close() {
      stopTimer?.()
      await termination?.catch(() => undefined)
      closed = true
    },
  }
}

function isAlive({ pid, startTime }: { pid: number; startTime: number }): boolean {
  const entry = readProcess(pid)
  return entry !== undefined && entry.startTime === startTime && !isDead(entry)
}
