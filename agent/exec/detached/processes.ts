// All detached processes of a box. The state directory is the source of truth; the maps in memory are a cache.
import { readFileSync } from 'node:fs'
import { mkdir, readdir, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { type AgentStartRequest, agentStartRequestSchema } from '../../../shared/api/processes.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LOG_LIMITS } from '../../../shared/limits.ts'
import { type RunningClock, startWallTimer } from '../../running-clock.ts'
import type { ActivityTracker } from '../../vitals/activity-tracker.ts'
import { baseEnvironment } from '../environment.ts'
import type { SpawnerKind } from '../spawner.ts'
import { bytesOnDisk, createHeadDiscarder } from './log-bounds.ts'
import { getTimesPath } from './output-times.ts'
import { createProcessMonitor, type ProcessMonitor } from './process-monitor.ts'
import {
  hasDetachedMarker,
  isPendingRemoval,
  type ProcessMetadata,
  preventStart,
  readMetadata,
  readStartRecord,
  removeDirectory,
} from './record.ts'
import { expiredProcessIds, type Retention } from './retention.ts'
import { createRunner, type RunnerKind } from './runner.ts'
import { digestOf, startProcess } from './start.ts'
import { createTimeRecorder } from './time-recorder.ts'
import type { DetachedProcess, DetachedProcesses } from './types.ts'
import { watchPath } from './watch-path.ts'

export type DetachedOptions = {
  /** State directory, absolute. Created when missing. */
  dir: string
  home: string
  clock: Clock
  /** Time limits count its time. Absent: also the time in which the box is frozen. */
  runningClock?: Pick<RunningClock, 'startTimer' | 'onThaw'>
  log: FastifyBaseLogger
  activity: ActivityTracker
  /** The agent's own environment. */
  env?: Record<string, string | undefined>
  spawnerKind?: SpawnerKind | null
  runnerKind?: RunnerKind | null
  /** Bound of each output log, in bytes. */
  maxLogBytes?: number
  retention?: Partial<Retention>
  /** Default: read from /proc. */
  bootId?: string
}

const DAY_MS = 24 * 60 * 60 * 1000
export const DEFAULT_RETENTION: Retention = {
  count: 1000,
  ageMs: 7 * DAY_MS,
  totalLogBytes: LOG_LIMITS.exitedProcesses.default,
}

/** Polling detects changes without a notification: a killed runner, and the growth of a log under the shell runner. */
const POLL_MS = 1000
const PRUNE_MS = 60 * 60 * 1000

/** Restores running and exited processes from the state directory. One agent at a time: see lock.ts. */
export async function openDetachedProcesses(options: DetachedOptions): Promise<DetachedProcesses> {
  const { dir, home, clock, log, activity, maxLogBytes = LOG_LIMITS.stream.default } = options
  const retention = { ...DEFAULT_RETENTION, ...options.retention }
  const env = options.env ?? process.env
  const bootId = options.bootId ?? readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const runner = createRunner(options.runnerKind ?? null, options.spawnerKind ?? null)
  const baseEnv = baseEnvironment(home, env)

  // In start order.
  const monitors = new Map<string, ProcessMonitor>()
  const running = new Set<ProcessMonitor>()
  const starting = new Map<string, { digest: string; detachedProcess: Promise<DetachedProcess> }>()
  const subscribers = new Set<(detachedProcess: DetachedProcess) => void>()
  /** Disk usage of exited processes, which no longer changes. */
  const logBytesByProcess = new Map<string, number>()
  const removals = new Set<Promise<void>>()
  let closed = false

  const exitNotificationDir = join(dir, '.exited')
  await mkdir(exitNotificationDir, { recursive: true, mode: 0o700 })

  const remove = (path: string) => {
    const removal = removeDirectory(path)
      .catch((err: unknown) => log.error({ err, path }, 'failed to remove a process directory'))
      .finally(() => removals.delete(removal))
    removals.add(removal)
    return removal
  }

  function pruneExited(): void {
    const exited = [...monitors.values()].flatMap(
      ({ detachedProcess: { processId, exit, startedAt, logs, attached, dir } }) => {
        if (exit === null) return []
        // Its client reads the output, or the attachment deletes it.
        if (attached !== null && !hasDetachedMarker(dir)) return []
        let bytes = logBytesByProcess.get(processId)
        if (bytes === undefined) {
          bytes = [logs.stdout.path, logs.stderr.path]
            .flatMap((path) => [path, getTimesPath(path)])
            .reduce((sum, path) => sum + bytesOnDisk(path), 0)
          logBytesByProcess.set(processId, bytes)
        }
        return [{ processId, exitedAt: exit.finishedAt ?? startedAt, logBytes: bytes }]
      },
    )
    for (const processId of expiredProcessIds(exited, clock.now(), retention)) {
      monitors.delete(processId)
      logBytesByProcess.delete(processId)
      void remove(join(dir, processId))
    }
  }

  /** Logs errors: a failing subscriber must not affect the process. */
  const notify = (callback: (detachedProcess: DetachedProcess) => void, detachedProcess: DetachedProcess) => {
    try {
      callback(detachedProcess)
    } catch (err) {
      log.error({ err, processId: detachedProcess.processId }, 'a subscriber of detached processes failed')
    }
  }

  const discardHead = createHeadDiscarder(log)
  const timeRecorder = createTimeRecorder({ clock, log })
  const recordTimes = ({ meta, detachedProcess }: ProcessMonitor) => {
    if (meta.runner === 'sh') timeRecorder.update(detachedProcess)
  }

  /** Starts tracking a process whose directory exists. undefined when its command never started. */
  function track(meta: ProcessMetadata): DetachedProcess | undefined {
    const processDir = join(dir, meta.processId)
    const startRecord = readStartRecord(processDir)
    if (startRecord === undefined) return undefined
    const endActivity = activity.startOperation()
    let monitor: ProcessMonitor | undefined
    const created = createProcessMonitor({
      dir: processDir,
      meta,
      startRecord,
      bootId,
      clock,
      startTimer: options.runningClock?.startTimer ?? startWallTimer,
      log,
      onExit() {
        endActivity()
        if (monitor !== undefined) recordTimes(monitor)
        // `monitor` is undefined when the process had exited before tracking started.
        if (monitor !== undefined && running.delete(monitor)) pruneExited()
      },
    })
    monitor = created
    recordTimes(created)
    monitors.set(meta.processId, created)
    if (created.detachedProcess.exit === null) running.add(created)
    for (const callback of [...subscribers]) notify(callback, created.detachedProcess)
    return created.detachedProcess
  }

  async function restore(): Promise<void> {
    const restored: ProcessMetadata[] = []
    for (const name of await readdir(dir)) {
      const path = join(dir, name)
      // The agent was killed during the removal.
      if (isPendingRemoval(name)) await rm(path, { recursive: true, force: true })
      if (!agentStartRequestSchema.shape.processId.safeParse(name).success) continue
      const meta = readMetadata(path)
      // The agent was killed during the start, which it had not acknowledged: discard the process.
      if (meta === undefined || (readStartRecord(path) === undefined && preventStart(path)))
        await remove(path)
      else restored.push(meta)
    }
    for (const meta of restored.sort((a, b) => a.startedAt - b.startedAt)) track(meta)
    pruneExited()
  }

  const startDeps = { dir, home, baseEnv, bootId, maxLogBytes, runner, clock, log, remove }
  async function startAndTrack(request: AgentStartRequest): Promise<DetachedProcess> {
    const { meta, releaseStdin } = await startProcess(request, startDeps)
    // A subscriber opens the stdin of an attached command.
    const detachedProcess = track(meta)
    releaseStdin()
    if (detachedProcess === undefined)
      throw new ApiError(
        'exec_failed',
        'The process directory was deleted during the start. Start the command again.',
      )
    // The process exited before tracking started, so onExit did not prune.
    if (detachedProcess.exit !== null) pruneExited()
    return detachedProcess
  }

  /** Errors such as EMFILE are transient: the next poll retries. */
  const checkExit = (monitor: ProcessMonitor) => {
    try {
      monitor.checkExit()
    } catch (err) {
      log.error(
        { err, processId: monitor.detachedProcess.processId },
        'failed to check whether a detached process has exited; will retry',
      )
    }
  }
  const poll = () => {
    for (const monitor of [...running]) checkExit(monitor)
    for (const monitor of running) recordTimes(monitor)
    for (const { meta, detachedProcess } of running)
      if (meta.runner === 'sh') void discardHead(detachedProcess, meta.maxLogBytes)
  }

  await restore()
  const stopWatching = watchPath(exitNotificationDir, (name) => {
    if (name === null) return poll()
    const monitor = monitors.get(name)
    if (monitor !== undefined) checkExit(monitor)
    void unlink(join(exitNotificationDir, name)).catch((err: NodeJS.ErrnoException) => {
      if (err.code !== 'ENOENT') log.error({ err }, 'failed to remove an exit notification')
    })
  })
  for (const name of await readdir(exitNotificationDir))
    await rm(join(exitNotificationDir, name), { force: true })
  poll()
  const stopExtending = options.runningClock?.onThaw((frozenMs) => {
    for (const monitor of running)
      monitor
        .extendDeadline(frozenMs)
        .catch((err: unknown) =>
          log.error(
            { err, processId: monitor.meta.processId },
            'failed to record that a detached process was frozen',
          ),
        )
  })
  const timers = [setInterval(poll, POLL_MS).unref(), setInterval(pruneExited, PRUNE_MS).unref()]
  log.info(
    { runner: runner.kind, running: running.size, total: monitors.size },
    'detached processes restored',
  )

  return {
    async start(request) {
      if (closed) throw new ApiError('exec_failed', 'The agent is stopping. Try again.')
      const { processId } = request
      const digest = digestOf(request)
      const known = monitors.get(processId)
      const knownDigest = known?.meta.digest ?? starting.get(processId)?.digest
      if (knownDigest !== undefined && knownDigest !== digest)
        throw new ApiError('invalid_request', 'processId was already used for a different command.')
      if (known !== undefined) return known.detachedProcess
      const pending = starting.get(processId)?.detachedProcess
      if (pending !== undefined) return pending
      const detachedProcess = startAndTrack(request).finally(() => starting.delete(processId))
      starting.set(processId, { digest, detachedProcess })
      return detachedProcess
    },
    list: () =>
      [...monitors.values()]
        .reverse()
        .map(({ detachedProcess }) => detachedProcess)
        .sort((a, b) => b.startedAt - a.startedAt),
    get: (processId) => monitors.get(processId)?.detachedProcess,
    async kill(processId) {
      // A failed start is reported to the caller of start().
      await starting.get(processId)?.detachedProcess.catch(() => undefined)
      const monitor = monitors.get(processId)
      if (monitor === undefined)
        throw new ApiError('not_found', `Process ${processId} not found. Check the id.`)
      return monitor.kill()
    },
    signal: (processId, name) => monitors.get(processId)?.signal(name) ?? false,
    async remove(processId) {
      const monitor = monitors.get(processId)
      if (monitor === undefined || monitor.detachedProcess.exit === null) return
      monitors.delete(processId)
      logBytesByProcess.delete(processId)
      await remove(join(dir, processId))
    },
    subscribe(callback) {
      subscribers.add(callback)
      for (const { detachedProcess } of [...monitors.values()]) notify(callback, detachedProcess)
      return () => subscribers.delete(callback)
    },
    async close() {
      closed = true
      await Promise.allSettled([...starting.values()].map(({ detachedProcess }) => detachedProcess))
      for (const timer of timers) clearInterval(timer)
      stopExtending?.()
      await Promise.all([...monitors.values()].map((monitor) => monitor.close()))
      stopWatching()
      await Promise.all(removals)
    },
  }
}
