// Opens the detached processes of a box. The state directory is the source of truth; the state in memory is a cache.
import { readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import type { Logger } from 'pino'
import type { AgentStartRequest } from '../../../shared/api/processes.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LOG_LIMITS } from '../../../shared/limits.ts'
import type { ActivityTracker } from '../../activity-tracker.ts'
import { type RunningClock, startWallTimer } from '../../running-clock.ts'
import type { CreateEnvironment } from '../environment.ts'
import type { SpawnerKind } from '../spawner.ts'
import { createDirectoryRemover } from './directory-remover.ts'
import { ExitedProcesses } from './exited-processes.ts'
import { startPolling } from './poll.ts'
import { restoreMetadata } from './restore.ts'
import { DEFAULT_RETENTION, type Retention } from './retention.ts'
import { createRunner, type RunnerKind } from './runner.ts'
import { createShellLogs } from './shell-logs.ts'
import { startProcess } from './start.ts'
import { StartRequests } from './start-requests.ts'
import { TrackedProcesses } from './tracked-processes.ts'
import type { DetachedProcess, DetachedProcesses } from './types.ts'

export type DetachedOptions = {
  /** State directory, absolute. Created when missing. */
  dir: string
  home: string
  clock: Clock
  /** Time limits count its time. Absent: time limits also count the time in which the box is frozen. */
  runningClock?: Pick<RunningClock, 'startTimer' | 'onThaw'>
  log: Logger
  activity: ActivityTracker
  createEnv: CreateEnvironment
  spawnerKind?: SpawnerKind | null
  runnerKind?: RunnerKind | null
  /** Bound of each output log, in bytes. */
  maxLogBytes?: number
  retention?: Partial<Retention>
  /** Default: read from /proc. */
  bootId?: string
}

const PRUNE_MS = 60 * 60 * 1000

/** Restores running and exited processes from the state directory. One agent at a time: see lock.ts. */
export async function openDetachedProcesses(options: DetachedOptions): Promise<DetachedProcesses> {
  const { dir, home, clock, log, activity, runningClock, maxLogBytes = LOG_LIMITS.stream.default } = options
  const bootId = options.bootId ?? readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const runner = createRunner(options.runnerKind ?? null, options.spawnerKind ?? null)
  const remover = createDirectoryRemover(log)
  const shellLogs = createShellLogs({ clock, log })
  const tracked = new TrackedProcesses({
    dir,
    bootId,
    clock,
    startTimer: runningClock?.startTimer ?? startWallTimer,
    log,
    activity,
    recordTimes: shellLogs.recordTimes,
    onExit: () => exited.prune(),
  })
  const retention = { ...DEFAULT_RETENTION, ...options.retention }
  const exited = new ExitedProcesses({ dir, tracked, remover, clock, retention })

  await mkdir(dir, { recursive: true, mode: 0o700 })
  for (const meta of await restoreMetadata(dir, remover.remove)) tracked.add(meta)
  exited.prune()
  const stopPolling = await startPolling({ dir, tracked, shellLogs, runningClock, log })
  const pruneTimer = setInterval(() => exited.prune(), PRUNE_MS).unref()
  log.info(
    { runner: runner.kind, running: tracked.running.length, total: tracked.size },
    'detached processes restored',
  )

  const startDeps = {
    dir,
    home,
    createEnv: options.createEnv,
    bootId,
    maxLogBytes,
    runner,
    clock,
    log,
    remove: remover.remove,
  }
  async function startAndTrack(request: AgentStartRequest): Promise<DetachedProcess> {
    const { meta, releaseStdin } = await startProcess(request, startDeps)
    // A subscriber opens the stdin of an attached command.
    const detachedProcess = tracked.add(meta)
    releaseStdin()
    if (detachedProcess === undefined)
      throw new ApiError(
        'exec_failed',
        'The process directory was deleted during the start. Start the command again.',
      )
    // The process exited before it was added, so onExit was not called.
    if (detachedProcess.exit !== null) exited.prune()
    return detachedProcess
  }
  const starts = new StartRequests({
    find(processId) {
      const monitor = tracked.get(processId)
      return monitor && { digest: monitor.meta.digest, detachedProcess: monitor.detachedProcess }
    },
    start: startAndTrack,
  })

  return {
    start: (request) => starts.start(request),
    list: () => tracked.list(),
    get: (processId) => tracked.get(processId)?.detachedProcess,
    async kill(processId) {
      await starts.waitFor(processId)
      const monitor = tracked.get(processId)
      if (monitor === undefined)
        throw new ApiError('not_found', `Process ${processId} not found. Check the id.`)
      return monitor.kill()
    },
    signal: (processId, name) => tracked.get(processId)?.signal(name) ?? false,
    remove: (processId) => exited.remove(processId),
    subscribe: (callback) => tracked.subscribe(callback),
    async close() {
      await starts.close()
      // A termination in progress needs the notification of the exit.
      await tracked.close()
      stopPolling()
      clearInterval(pruneTimer)
      await remover.waitUntilIdle()
    },
  }
}
