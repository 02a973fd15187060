// Runs stored jobs, one at a time per target: when a job is scheduled, when it is due, and again after a store error.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import type { Replica } from '../replicas/replica.ts'
import { createDueTimer } from './due-timer.ts'

export type JobRunnerOptions = {
  clock: Clock
  log: Pick<Logger, 'error'>
  /** Steps begin only while its lease is valid. */
  replica: Pick<Replica, 'isLeaseValid' | 'events'>
  /** What a job belongs to, for the log. */
  target: 'box' | 'snapshot' | 'schedule'
  /**
   * Runs the steps of the target's job until no step is due. Calls `nextStep` before each step; undefined: the
   * runner is closing, or the lease of this coordinator is lost. The controller is aborted with INTERRUPTED when the target is
   * scheduled during the step, when the lease is lost, and on close.
   * @returns when to run again, in milliseconds since the epoch; undefined: when the target is scheduled or its job is due
   */
  run(id: string, nextStep: () => AbortController | undefined): Promise<number | undefined>
  /** Those that run are left out. */
  listDueIds(now: number): Promise<string[]>
  /** The earliest time at which another job becomes due. */
  findNextDueTime(now: number): Promise<number | undefined>
}

export type JobRunner = {
  /** Runs the target's job, or runs it again when it is running. */
  schedule(id: string): void
  /** Runs the jobs that are due. */
  runDue(): void
  /** Runs the jobs that are due, and plans running steps again: calls of schedule() may have been missed. */
  runAll(): void
  /** Runs the jobs that are due at this time, in milliseconds since the epoch. */
  scheduleAt(time: number): void
  /** Resolves when the running steps have finished. */
  close(): Promise<void>
}

type ActiveRun = {
  done: Promise<void>
  /** schedule() was called during the current step. */
  isRescheduled: boolean
  /** The target was listed as due during the run, which may have read its job before that. */
  wasDue: boolean
  controller: AbortController
}

/** The abort reason of a step whose job must be read again. */
export const INTERRUPTED = Symbol('interrupted')
const RETRY_AFTER_STORE_ERROR_MS = 1_000

export function createJobRunner(options: JobRunnerOptions): JobRunner {
  const { clock, log, replica, target, run, listDueIds, findNextDueTime } = options
  const active = new Map<string, ActiveRun>()
  let closing = false

  const timer = createDueTimer(
    clock,
    async () => {
      const now = clock.now()
      for (const id of await listDueIds(now)) {
        const current = active.get(id)
        if (current) current.wasDue = true
        else schedule(id)
      }
      const nextDueTime = await findNextDueTime(now)
      if (nextDueTime !== undefined) timer.scheduleAt(nextDueTime)
    },
    (error) => retryAfterStoreError(error, 'failed to list due jobs; will retry'),
  )

  function retryAfterStoreError(err: unknown, message: string, fields: Record<string, string> = {}): void {
    if (closing) return
    log.error({ err, ...fields }, message)
    timer.scheduleAt(clock.now() + RETRY_AFTER_STORE_ERROR_MS)
  }

  function schedule(id: string): void {
    if (closing) return
    const current = active.get(id)
    if (current) {
      current.isRescheduled = true
      current.controller.abort(INTERRUPTED)
      return
    }
    const created: ActiveRun = {
      done: Promise.resolve(),
      isRescheduled: false,
      wasDue: false,
      controller: new AbortController(),
    }
    active.set(id, created)
    created.done = run(id, () => startStep(created)).then(
      (dueAt) => {
        active.delete(id)
        if (created.isRescheduled) return schedule(id)
        if (created.wasDue) timer.runNow()
        if (dueAt !== undefined) timer.scheduleAt(dueAt)
      },
      (error: unknown) => {
        active.delete(id)
        retryAfterStoreError(error, `failed to run the job of a ${target}; will retry`, {
          [`${target}Id`]: id,
        })
      },
    )
  }

  function startStep(activeRun: ActiveRun): AbortController | undefined {
    if (closing || !replica.isLeaseValid) return undefined
    activeRun.isRescheduled = false
    activeRun.controller = new AbortController()
    return activeRun.controller
  }

  function runAll(): void {
    for (const id of active.keys()) schedule(id)
    timer.runNow()
  }

  function interrupt(): void {
    for (const { controller } of active.values()) controller.abort(INTERRUPTED)
  }

  replica.events.on('lost', interrupt)
  replica.events.on('regained', timer.runNow)
  replica.events.on('stopped', timer.runNow)

  async function close(): Promise<void> {
    closing = true
    replica.events.off('lost', interrupt)
    replica.events.off('regained', timer.runNow)
    replica.events.off('stopped', timer.runNow)
    timer.close()
    interrupt()
    await Promise.all([...active.values()].map(({ done }) => done))
  }

  return { schedule, runDue: timer.runNow, runAll, scheduleAt: timer.scheduleAt, close }
}
