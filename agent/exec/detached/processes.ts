// All detached processes of a box: their folder is the truth, and what is held here only a view of it.
import { readFileSync } from 'node:fs'
import { mkdir, readdir, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { type AgentStartRequest, agentStartRequest } from '../../../shared/api/processes.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LOG_LIMITS } from '../../../shared/limits.ts'
import type { Activity } from '../../vitals/activity.ts'
import { baseEnvironment } from '../environment.ts'
import type { SpawnerKind } from '../spawner.ts'
import { createHandle, type Handle } from './detached-process.ts'
import { isTrash, type Meta, preventStart, readMeta, readStarted, removeFolder } from './record.ts'
import { type Retention, surplus } from './retention.ts'
import { bytesOnDisk, createBounds } from './ring.ts'
import { createRunner, type RunnerKind } from './runner.ts'
import { digestOf, startProcess } from './start.ts'
import type { DetachedProcess, DetachedProcesses } from './types.ts'
import { watchFile } from './watch-file.ts'

export type DetachedOptions = {
  /** Absolute; made when it is not there. */
  folder: string
  home: string
  clock: Clock
  log: FastifyBaseLogger
  activity: Activity
  /** The agent's own environment. */
  env?: Record<string, string | undefined>
  spawner?: SpawnerKind | null
  runner?: RunnerKind | null
  /** The most that is kept of one stream of one process. */
  logBytes?: number
  retention?: Partial<Retention>
  /** Of this start of the system; read when it is not given. */
  bootId?: string
}

const DAY_MS = 24 * 60 * 60 * 1000
export const RETENTION: Retention = { count: 1000, ageMs: 7 * DAY_MS, logBytes: LOG_LIMITS.ended.default }

/** For what tells nothing: a runner that was killed, a log that a script's command writes. */
const LOOK_MS = 1000
const RETENTION_LOOK_MS = 60 * 60 * 1000

/** Finds what runs and what has ended in the folder. One agent at a time: see lock.ts. */
export async function openDetachedProcesses(options: DetachedOptions): Promise<DetachedProcesses> {
  const { folder, home, clock, log, activity, logBytes = LOG_LIMITS.stream.default } = options
  const retention = { ...RETENTION, ...options.retention }
  const env = options.env ?? process.env
  const bootId = options.bootId ?? readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const runner = createRunner(options.runner ?? null, options.spawner ?? null)
  const baseEnv = baseEnvironment(home, env)
  // On a host that knows a box's processes by nothing else, the runner leaves the agent's family tree.
  if (env.BOXWOOD_BOX !== undefined) baseEnv.BOXWOOD_BOX = env.BOXWOOD_BOX

  // In the order in which they started.
  const handles = new Map<string, Handle>()
  const running = new Set<Handle>()
  const starting = new Map<string, { digest: string; process: Promise<DetachedProcess> }>()
  const callbacks = new Set<(process: DetachedProcess) => void>()
  /** Of ended processes: what they take on the disk changes no more. */
  const logBytesOf = new Map<string, number>()
  const removals = new Set<Promise<void>>()
  let closed = false

  const news = join(folder, '.ended')
  await mkdir(news, { recursive: true, mode: 0o700 })

  const remove = (path: string) => {
    const removal = removeFolder(path)
      .catch((error: unknown) => log.error({ err: error, path }, 'a record could not be removed'))
      .finally(() => removals.delete(removal))
    removals.add(removal)
    return removal
  }

  function tidy(): void {
    const ended = [...handles.values()].flatMap(({ process: { processId, end, startedAt, logs } }) => {
      if (end === null) return []
      let bytes = logBytesOf.get(processId)
      if (bytes === undefined) {
        bytes = bytesOnDisk(logs.stdout.path) + bytesOnDisk(logs.stderr.path)
        logBytesOf.set(processId, bytes)
      }
      return [{ processId, endedAt: end.finishedAt ?? startedAt, logBytes: bytes }]
    })
    for (const processId of surplus(ended, clock.now(), retention)) {
      handles.delete(processId)
      logBytesOf.delete(processId)
      void remove(join(folder, processId))
    }
  }

  /** What runs does not depend on who is told of it. */
  const tell = (callback: (process: DetachedProcess) => void, process: DetachedProcess) => {
    try {
      callback(process)
    } catch (error) {
      log.error({ err: error, processId: process.processId }, 'who follows the processes failed')
    }
  }

  function adopt(meta: Meta): DetachedProcess | undefined {
    const path = join(folder, meta.processId)
    const started = readStarted(path)
    if (started === undefined) return undefined
    const done = activity.begin()
    let handle: Handle | undefined
    const created = createHandle({
      folder: path,
      meta,
      started,
      bootId,
      clock,
      log,
      onEnd() {
        done()
        // Undefined when it had ended before we looked.
        if (handle !== undefined && running.delete(handle)) tidy()
      },
    })
    handle = created
    handles.set(meta.processId, created)
    if (created.process.end === null) running.add(created)
    for (const callback of [...callbacks]) tell(callback, created.process)
    return created.process
  }

  async function scan(): Promise<void> {
    const found: Meta[] = []
    for (const name of await readdir(folder)) {
      const path = join(folder, name)
      // Left by an agent that was killed while it removed it.
      if (isTrash(name)) await rm(path, { recursive: true, force: true })
      if (!agentStartRequest.shape.processId.safeParse(name).success) continue
      const meta = readMeta(path)
      // An agent that was killed in the middle of a start: nobody was told of it, and now it never begins.
      if (meta === undefined || (readStarted(path) === undefined && preventStart(path))) await remove(path)
      else found.push(meta)
    }
    for (const meta of found.sort((a, b) => a.startedAt - b.startedAt)) adopt(meta)
    tidy()
  }

  const startDeps = { folder, home, baseEnv, bootId, logBytes, runner, clock, log, remove }
  async function begin(request: AgentStartRequest): Promise<DetachedProcess> {
    const process = adopt(await startProcess(request, startDeps))
    if (process === undefined) throw new ApiError('exec_failed', 'What was started left no trace.')
    // Shorter than its start took: its end was no news.
    if (process.end !== null) tidy()
    return process
  }

  /** Out of descriptors, say: it is looked at again soon. */
  const check = (handle: Handle) => {
    try {
      handle.check()
    } catch (error) {
      log.error({ err: error, processId: handle.process.processId }, 'it could not be looked at')
    }
  }
  const bound = createBounds(log)
  const look = () => {
    for (const handle of [...running]) check(handle)
    for (const { meta, process } of running) if (meta.runner === 'sh') void bound(process, meta.keepBytes)
  }

  await scan()
  const stopNews = watchFile(news, (name) => {
    if (name === null) return look()
    const handle = handles.get(name)
    if (handle !== undefined) check(handle)
    void unlink(join(news, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') log.error({ err: error }, 'news of an end cannot be removed')
    })
  })
  for (const name of await readdir(news)) await rm(join(news, name), { force: true })
  look()
  const timers = [setInterval(look, LOOK_MS).unref(), setInterval(tidy, RETENTION_LOOK_MS).unref()]
  log.info({ runner: runner.kind, running: running.size, kept: handles.size }, 'detached processes found')

  return {
    async start(request) {
      if (closed) throw new ApiError('exec_failed', 'The agent is stopping.')
      const { processId } = request
      const digest = digestOf(request)
      const known = handles.get(processId)
      const earlier = known?.meta.digest ?? starting.get(processId)?.digest
      if (earlier !== undefined && earlier !== digest)
        throw new ApiError('invalid_request', 'processId: it has started something else before.')
      if (known !== undefined) return known.process
      const underway = starting.get(processId)?.process
      if (underway !== undefined) return underway
      const process = begin(request).finally(() => starting.delete(processId))
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
      // Who asked for the start hears how it went.
      await starting.get(processId)?.process.catch(() => undefined)
      const handle = handles.get(processId)
      if (handle === undefined) throw new ApiError('not_found', `${processId}: no such process.`)
      return handle.kill()
    },
    each(callback) {
      callbacks.add(callback)
      for (const { process } of [...handles.values()]) tell(callback, process)
      return () => callbacks.delete(callback)
    },
    async close() {
      closed = true
      await Promise.allSettled([...starting.values()].map(({ process }) => process))
      for (const timer of timers) clearInterval(timer)
      await Promise.all([...handles.values()].map((handle) => handle.close()))
      stopNews()
      await Promise.all(removals)
    },
  }
}
