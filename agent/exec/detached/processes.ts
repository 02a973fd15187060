// All detached processes of a box. The state directory is the source of truth; memory holds a view of it.
import { readFileSync } from 'node:fs'
import { mkdir, readdir, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { type AgentStartRequest, agentStartRequest } from '../../../shared/api/processes.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LOG_LIMITS } from '../../../shared/limits.ts'
import type { ActivityTracker } from '../../vitals/activity-tracker.ts'
import { baseEnvironment } from '../environment.ts'
import type { SpawnerKind } from '../spawner.ts'
import { createProcessHandle, type ProcessHandle } from './detached-process.ts'
import { bytesOnDisk, createHeadDiscarder } from './log-bounds.ts'
import {
  isPendingRemoval,
  type Meta,
  preventStart,
  readMeta,
  readStarted,
  removeDirectory,
} from './record.ts'
import { expiredProcessIds, type Retention } from './retention.ts'
import { createRunner, type RunnerKind } from './runner.ts'
import { digestOf, startProcess } from './start.ts'
import type { DetachedProcess, DetachedProcesses } from './types.ts'
import { watchPath } from './watch-path.ts'

export type DetachedOptions = {
  /** State directory, absolute. Created when missing. */
  dir: string
  home: string
  clock: Clock
  log: FastifyBaseLogger
  activity: ActivityTracker
  /** The agent's own environment. */
  env?: Record<string, string | undefined>
  spawner?: SpawnerKind | null
  runner?: RunnerKind | null
  /** Bound of each output log, in bytes. */
  logBytes?: number
  retention?: Partial<Retention>
  /** Default: read from /proc. */
  bootId?: string
}

const DAY_MS = 24 * 60 * 60 * 1000
export const DEFAULT_RETENTION: Retention = {
  count: 1000,
  ageMs: 7 * DAY_MS,
  logBytes: LOG_LIMITS.exitedProcesses.default,
}

/** Polling finds what sends no notification: a killed runner, and the growth of a log under the shell runner. */
const POLL_MS = 1000
const PRUNE_MS = 60 * 60 * 1000

/** Restores running and exited processes from the state directory. One agent at a time: see lock.ts. */
export async function openDetachedProcesses(options: DetachedOptions): Promise<DetachedProcesses> {
  const { dir, home, clock, log, activity, logBytes = LOG_LIMITS.stream.default } = options
  const retention = { ...DEFAULT_RETENTION, ...options.retention }
  const env = options.env ?? process.env
  const bootId = options.bootId ?? readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const runner = createRunner(options.runner ?? null, options.spawner ?? null)
  const baseEnv = baseEnvironment(home, env)
  // Without a pid namespace the provider finds a box's processes by this variable: the runner is not a child of the agent.
  if (env.BOXWOOD_BOX !== undefined) baseEnv.BOXWOOD_BOX = env.BOXWOOD_BOX

  // In start order.
  const handles = new Map<string, ProcessHandle>()
  const running = new Set<ProcessHandle>()
  const starting = new Map<string, { digest: string; process: Promise<DetachedProcess> }>()
  const subscribers = new Set<(process: DetachedProcess) => void>()
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
    const exited = [...handles.values()].flatMap(({ process: { processId, exit, startedAt, logs } }) => {
      if (exit === null) return []
      let bytes = logBytesByProcess.get(processId)
      if (bytes === undefined) {
        bytes = bytesOnDisk(logs.stdout.path) + bytesOnDisk(logs.stderr.path)
        logBytesByProcess.set(processId, bytes)
      }
      return [{ processId, exitedAt: exit.finishedAt ?? startedAt, logBytes: bytes }]
    })
    for (const processId of expiredProcessIds(exited, clock.now(), retention)) {
      handles.delete(processId)
      logBytesByProcess.delete(processId)
      void remove(join(dir, processId))
    }
  }

  /** A failing subscriber must not affect the process. */
  const notify = (callback: (process: DetachedProcess) => void, process: DetachedProcess) => {
    try {
      callback(process)
    } catch (err) {
      log.error({ err, processId: process.processId }, 'a subscriber of detached processes failed')
    }
  }

  /** Starts tracking a process whose directory exists. undefined when its command never started. */
  function track(meta: Meta): DetachedProcess | undefined {
    const processDir = join(dir, meta.processId)
    const started = readStarted(processDir)
    if (started === undefined) return undefined
    const endActivity = activity.startOperation()
    let handle: ProcessHandle | undefined
    const created = createProcessHandle({
      dir: processDir,
      meta,
      started,
      bootId,
      clock,
      log,
      onExit() {
        endActivity()
        // `handle` is undefined when the process had exited before tracking started.
        if (handle !== undefined && running.delete(handle)) pruneExited()
      },
    })
    handle = created
    handles.set(meta.processId, created)
    if (created.process.exit === null) running.add(created)
    for (const callback of [...subscribers]) notify(callback, created.process)
    return created.process
  }

  async function restore(): Promise<void> {
    const found: Meta[] = []
    for (const name of await readdir(dir)) {
      const path = join(dir, name)
      // Left by an agent that was killed during the removal.
      if (isPendingRemoval(name)) await rm(path, { recursive: true, force: true })
      if (!agentStartRequest.shape.processId.safeParse(name).success) continue
      const meta = readMeta(path)
      // The agent was killed during the start and never acknowledged it: discard it.
      if (meta === undefined || (readStarted(path) === undefined && preventStart(path))) await remove(path)
      else found.push(meta)
    }
    for (const meta of found.sort((a, b) => a.startedAt - b.startedAt)) track(meta)
    pruneExited()
  }

  const startDeps = { dir, home, baseEnv, bootId, logBytes, runner, clock, log, remove }
  async function startAndTrack(request: AgentStartRequest): Promise<DetachedProcess> {
    const process = track(await startProcess(request, startDeps))
    if (process === undefined) throw new ApiError('exec_failed', 'The process directory disappeared.')
    // It exited before tracking started, so onExit did not prune.
    if (process.exit !== null) pruneExited()
    return process
  }

  /** Errors such as EMFILE are transient: the next poll retries. */
  const check = (handle: ProcessHandle) => {
    try {
      handle.check()
    } catch (err) {
      log.error(
        { err, processId: handle.process.processId },
        'failed to check a detached process; will retry',
      )
    }
  }
  const discardHead = createHeadDiscarder(log)
  const poll = () => {
    for (const handle of [...running]) check(handle)
    for (const { meta, process } of running)
      if (meta.runner === 'sh') void discardHead(process, meta.maxLogBytes)
  }

  await restore()
  const stopWatching = watchPath(exitNotificationDir, (name) => {
    if (name === null) return poll()
    const handle = handles.get(name)
    if (handle !== undefined) check(handle)
    void unlink(join(exitNotificationDir, name)).catch((err: NodeJS.ErrnoException) => {
      if (err.code !== 'ENOENT') log.error({ err }, 'failed to remove an exit notification')
    })
  })
  for (const name of await readdir(exitNotificationDir))
    await rm(join(exitNotificationDir, name), { force: true })
  poll()
  const timers = [setInterval(poll, POLL_MS).unref(), setInterval(pruneExited, PRUNE_MS).unref()]
  log.info({ runner: runner.kind, running: running.size, total: handles.size }, 'detached processes restored')

  return {
    async start(request) {
      if (closed) throw new ApiError('exec_failed', 'The agent is stopping.')
      const { processId } = request
      const digest = digestOf(request)
      const known = handles.get(processId)
      const knownDigest = known?.meta.digest ?? starting.get(processId)?.digest
      if (knownDigest !== undefined && knownDigest !== digest)
        throw new ApiError('invalid_request', 'processId was already used for a different command.')
      if (known !== undefined) return known.process
      const pending = starting.get(processId)?.process
      if (pending !== undefined) return pending
      const process = startAndTrack(request).finally(() => starting.delete(processId))
      starting.set(processId, { digest, process })
      return process
    },
    list: () =>
      [...handles.values()]
        .reverse()
        .map(({ process }) => process)
        .sort((a, b) => b.startedAt - a.startedAt),
    get: (processId) => handles.get(processId)?.process,
    async kill(processId) {
      // A failed start is reported to the caller of start().
      await starting.get(processId)?.process.catch(() => undefined)
      const handle = handles.get(processId)
      if (handle === undefined) throw new ApiError('not_found', `Process ${processId} not found.`)
      return handle.kill()
    },
    subscribe(callback) {
      subscribers.add(callback)
      for (const { process } of [...handles.values()]) notify(callback, process)
      return () => subscribers.delete(callback)
    },
    async close() {
      closed = true
      await Promise.allSettled([...starting.values()].map(({ process }) => process))
      for (const timer of timers) clearInterval(timer)
      await Promise.all([...handles.values()].map((handle) => handle.close()))
      stopWatching()
      await Promise.all(removals)
    },
  }
}
