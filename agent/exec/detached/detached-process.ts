// One detached process as long as an agent knows it: it looks for its end, keeps its time limit and ends its tree.
import type { FastifyBaseLogger } from 'fastify'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { isDead, readProcess } from '../process-table.ts'
import { type Termination, terminateTree } from '../terminate-tree.ts'
import { openChanges } from './changes.ts'
import { endOf, LOST, type Marks } from './end.ts'
import { openLog } from './log.ts'
import { type Mark, type Meta, readExit, readMark, type Started, writeMark } from './record.ts'
import type { DetachedProcess, ProcessEnd, StreamName } from './types.ts'

export type Handle = {
  readonly process: DetachedProcess
  readonly meta: Meta
  /** Looks whether it has ended. Two small reads. */
  check(): void
  /** Ends its tree; once it has ended, what it left behind. */
  kill(): Promise<Killed>
  /** Lets go of it; resolves when an ending that was begun is over. */
  close(): Promise<void>
}

export type HandleOptions = {
  folder: string
  meta: Meta
  started: Started
  bootId: string
  clock: Clock
  log: FastifyBaseLogger
  onEnd(): void
}

type Killed = { wasRunning: boolean; signal: Termination['signal'] }

/** The runner still has to write the last bytes: longer than it waits for room on a full disk. */
const END_TIMEOUT_MS = 15_000

export function createHandle(options: HandleOptions): Handle {
  const { folder, meta, started, bootId, clock, log, onEnd } = options
  const { processId, keepBytes, deadline } = meta
  const ended = Promise.withResolvers<ProcessEnd>()
  const sizes: Partial<Record<StreamName, number>> = {}
  const marks: Marks = {}
  // A script adopts no orphans; its children but for the command are what it writes the end with, and not to be ended.
  const keeper = meta.runner === 'native' ? { keeper: started.runner } : {}
  let end: ProcessEnd | null = null
  let limit: NodeJS.Timeout | undefined
  let ending: Promise<Killed> | undefined
  let closed = false

  const changes = openChanges(folder)
  const logOf = (name: StreamName) =>
    openLog({
      path: `${folder}/${name}`,
      keepBytes,
      finalSize: () => sizes[name] ?? null,
      onWrite: (changed) => changes.watch(name, changed),
    })
  const process: DetachedProcess = {
    processId,
    pid: started.command.pid,
    command: meta.command,
    cwd: meta.cwd,
    startedAt: meta.startedAt,
    record: meta.record,
    folder,
    logs: { stdout: logOf('stdout'), stderr: logOf('stderr') },
    get end() {
      return end
    },
    ended: ended.promise,
  }

  const settle = (how: ProcessEnd) => {
    end = how
    clearTimeout(limit)
    log.info({ processId, ...how }, 'detached process ended')
    ended.resolve(how)
    onEnd()
  }
  const settleFromExit = (): boolean => {
    const exit = readExit(folder)
    if (exit === undefined) return false
    Object.assign(sizes, exit.sizes)
    if (exit.cut) log.error({ processId }, 'some of the output could not be written')
    settle(endOf(exit, marks))
    return true
  }
  const check = () => {
    if (end !== null || closed || settleFromExit()) return
    if (meta.bootId === bootId && isAlive(started.runner)) return
    // It may have written it just before it was gone.
    if (!settleFromExit()) settle(LOST)
  }

  const endTree = async (mark: Mark): Promise<Killed> => {
    marks[mark] ??= clock.now()
    await writeMark(folder, mark, marks[mark]).catch((error: unknown) =>
      // On a full disk above all a process must be ended; only an agent that dies now forgets why it was.
      log.error({ err: error, processId }, `that a ${mark} was begun could not be written down`),
    )
    const { signal, survivors } = await terminateTree({ ...started.command, processId, ...keeper })
    if (survivors.length > 0) log.warn({ processId, survivors }, 'processes outlived SIGKILL')
    if (survivors.includes(started.command.pid))
      throw new ApiError('exec_failed', 'The command cannot be ended.')
    const timeout = Promise.withResolvers<never>()
    const timer = setTimeout(
      () =>
        timeout.reject(new ApiError('exec_failed', 'Its last output cannot be written: is the disk full?')),
      END_TIMEOUT_MS,
    )
    check()
    await Promise.race([ended.promise, timeout.promise]).finally(() => clearTimeout(timer))
    return { wasRunning: signal !== null, signal }
  }
  const begin = (mark: Mark) => {
    ending ??= endTree(mark).finally(() => {
      ending = undefined
    })
    return ending
  }
  const expire = () => {
    check()
    if (end !== null || closed) return
    begin('timeout').catch((error: unknown) => log.error({ err: error, processId }, 'its time limit failed'))
  }

  for (const mark of ['kill', 'timeout'] as const) {
    const at = readMark(folder, mark)
    if (at !== undefined) marks[mark] = at
  }
  check()
  if (end === null) {
    const [unfinished] = Object.keys(marks) as Mark[]
    if (unfinished !== undefined)
      begin(unfinished).catch((error: unknown) => log.error({ err: error, processId }, 'it cannot be ended'))
    // A clock that was set back must not give it more time than it was given.
    const left = deadline === null ? null : Math.min(deadline - clock.now(), deadline - meta.startedAt)
    if (left !== null) limit = setTimeout(expire, Math.max(0, left))
  }

  return {
    process,
    meta,
    check,
    async kill() {
      check()
      if (end === null) return begin('kill')
      // It has ended, and its pid may be another's by now: what it left behind is known by its mark and its keeper.
      await terminateTree({ pid: started.command.pid, startTime: 0, processId, ...keeper })
      return { wasRunning: false, signal: null }
    },
    async close() {
      clearTimeout(limit)
      await ending?.catch(() => undefined)
      closed = true
    },
  }
}

function isAlive({ pid, startTime }: { pid: number; startTime: number }): boolean {
  const entry = readProcess(pid)
  return entry !== undefined && entry.startTime === startTime && !isDead(entry)
}
