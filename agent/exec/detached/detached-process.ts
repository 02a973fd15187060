// One detached process: detects its exit, enforces its time limit and terminates its process tree.
import { EventEmitter } from 'node:events'
import type { FastifyBaseLogger } from 'fastify'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { isDead, readProcess } from '../process-table.ts'
import { type Termination, terminateTree } from '../terminate-tree.ts'
import { LOST_EXIT, resolveExit, type TerminationTimes } from './exit-status.ts'
import { openLog } from './log.ts'
import {
  type Meta,
  readExit,
  readTerminationMarker,
  type Started,
  type TerminationCause,
  writeTerminationMarker,
} from './record.ts'
import type { DetachedProcess, ProcessExit, StreamName } from './types.ts'

export type ProcessHandle = {
  readonly process: DetachedProcess
  readonly meta: Meta
  /** Checks whether it has exited. Costs two small file reads. */
  check(): void
  /** Terminates its process tree; after its exit, the background processes it left. */
  kill(): Promise<KillResult>
  /** Stops tracking. Resolves when a termination in progress has completed. */
  close(): Promise<void>
}

export type ProcessHandleOptions = {
  dir: string
  meta: Meta
  started: Started
  bootId: string
  clock: Clock
  log: FastifyBaseLogger
  onExit(): void
}

type KillResult = { wasRunning: boolean; signal: Termination['signal'] }

/** How long the runner may take to write the exit record after KILL. Longer than it waits for space on a full disk. */
const EXIT_TIMEOUT_MS = 15_000

export function createProcessHandle(options: ProcessHandleOptions): ProcessHandle {
  const { dir, meta, started, bootId, clock, log, onExit } = options
  const { processId, maxLogBytes, deadline } = meta
  const events = new EventEmitter<{ exit: [] }>().setMaxListeners(0)
  const finalSizes: Partial<Record<StreamName, number>> = {}
  const terminationTimes: TerminationTimes = {}
  // The shell runner is no subreaper, and its children other than the command write the exit record: do not signal them.
  const subreaper = meta.runner === 'native' ? { subreaper: started.runner } : {}
  let exit: ProcessExit | null = null
  let timeLimit: NodeJS.Timeout | undefined
  let termination: Promise<KillResult> | undefined
  let closed = false

  const logOf = (name: StreamName) =>
    openLog({ path: `${dir}/${name}`, maxBytes: maxLogBytes, finalSize: () => finalSizes[name] ?? null })
  const process: DetachedProcess = {
    processId,
    pid: started.command.pid,
    command: meta.command,
    cwd: meta.cwd,
    startedAt: meta.startedAt,
    record: meta.record,
    dir,
    logs: { stdout: logOf('stdout'), stderr: logOf('stderr') },
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
    clearTimeout(timeLimit)
    log.info({ processId, ...result }, 'detached process exited')
    events.emit('exit')
    onExit()
  }
  const applyExitRecord = (): boolean => {
    const record = readExit(dir)
    if (record === undefined) return false
    Object.assign(finalSizes, record.sizes)
    if (record.outputIncomplete) log.error({ processId }, 'output of a detached process could not be written')
    setExit(resolveExit(record, terminationTimes))
    return true
  }
  const check = () => {
    if (exit !== null || closed || applyExitRecord()) return
    if (meta.bootId === bootId && isAlive(started.runner)) return
    // The runner may have written the record between the two checks.
    if (!applyExitRecord()) setExit(LOST_EXIT)
  }

  const waitForExit = async () => {
    if (exit !== null) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(
      () => reject(new ApiError('exec_failed', 'The last output cannot be written. Is the disk full?')),
      EXIT_TIMEOUT_MS,
    )
    const unsubscribe = process.onExit(resolve)
    await promise.finally(() => {
      clearTimeout(timer)
      unsubscribe()
    })
  }
  const terminateOnce = async (cause: TerminationCause): Promise<KillResult> => {
    terminationTimes[cause] ??= clock.now()
    await writeTerminationMarker(dir, cause, terminationTimes[cause]).catch((err: unknown) =>
      // Continue: on a full disk termination matters most. Only the cause is lost if the agent dies now.
      log.error({ err, processId, cause }, 'failed to write the termination marker'),
    )
    const { signal, survivors } = await terminateTree({ ...started.command, processId, ...subreaper })
    if (survivors.length > 0) log.warn({ processId, survivors }, 'processes survived SIGKILL')
    if (survivors.includes(started.command.pid))
      throw new ApiError('exec_failed', 'The command cannot be terminated.')
    check()
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
    check()
    if (exit === null && !closed) void terminateInBackground('timeout')
  }

  for (const cause of ['kill', 'timeout'] as const) {
    const at = readTerminationMarker(dir, cause)
    if (at !== undefined) terminationTimes[cause] = at
  }
  check()
  if (exit === null) {
    // A previous agent died during a termination: complete it.
    const [interrupted] = Object.keys(terminationTimes) as TerminationCause[]
    if (interrupted !== undefined) void terminateInBackground(interrupted)
    // min(): a clock that was set back must not extend the limit.
    const remainingMs = deadline === null ? null : Math.min(deadline - clock.now(), deadline - meta.startedAt)
    if (remainingMs !== null) timeLimit = setTimeout(onTimeLimit, Math.max(0, remainingMs))
  }

  return {
    process,
    meta,
    check,
    async kill() {
      check()
      if (exit === null) return terminate('kill')
      // The kernel may have reused the pid: find background processes by environment marker and subreaper only.
      await terminateTree({ pid: started.command.pid, startTime: 0, processId, ...subreaper })
      return { wasRunning: false, signal: null }
    },
    async close() {
      clearTimeout(timeLimit)
      await termination?.catch(() => undefined)
      closed = true
    },
  }
}

function isAlive({ pid, startTime }: { pid: number; startTime: number }): boolean {
  const entry = readProcess(pid)
  return entry !== undefined && entry.startTime === startTime && !isDead(entry)
}
