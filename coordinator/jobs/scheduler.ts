// Runs schedules when they are due. Each feature adds handlers for its kinds of schedules, and what it deletes every hour.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import type { Pruner, ScheduleHandler, Schedules } from '../http/module.ts'
import type { Replica } from '../replicas/replica.ts'
import { subscribeToDueTimes } from './due-times.ts'
import { createJobRunner } from './job-runner.ts'
import {
  claimSchedule,
  deleteSchedule,
  findNextDueTime,
  insertMissingSchedule,
  listDueSchedules,
  moveSchedule,
  releaseSchedule,
  type ScheduleKey,
} from './schedule-store.ts'

export type Scheduler = {
  /** Adds the schedules of a feature. Call it before start(). */
  add(schedules: Schedules): void
  start(): Promise<void>
  /** Runs the schedules that are due. */
  runDue(): void
  /** Resolves when the running evaluations have finished. */
  close(): Promise<void>
}

export type SchedulerOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error' | 'info'>
  replica: Pick<Replica, 'id' | 'isShared' | 'isLeaseValid' | 'events'>
}

const PRUNE_INTERVAL_MS = 60 * 60_000
/** The scheduler finds schedules that were written without recordDueTime() after at most this time. */
const MAX_INTERVAL_MS = 60_000
const RETRY_AFTER_FAILURE_MS = 60_000
/** Another coordinator evaluates the schedule now, or has done so. */
const RETRY_CLAIMED_MS = 5_000
/** What the schedule is about is at another coordinator, which may stop. */
const RETRY_ELSEWHERE_MS = 60_000
/** Another version of the coordinator has written the schedule. */
const RETRY_UNKNOWN_KIND_MS = 60 * 60_000

const toId = ({ kind, target_id }: ScheduleKey): string => `${kind} ${target_id}`
function toKey(id: string): ScheduleKey {
  const [kind = '', target_id = ''] = id.split(' ')
  return { kind, target_id }
}

const toFields = ({ kind, target_id: targetId }: ScheduleKey) => ({ kind, targetId })

export function createScheduler({ db, clock, log, replica }: SchedulerOptions): Scheduler {
  const closing = new AbortController()
  const handlers = new Map<string, ScheduleHandler>([['prune', prune]])
  const elsewhere = new Map<string, NonNullable<Schedules['isElsewhere']>>()
  const pruners = new Map<string, Pruner>()
  const beforeList: ((now: number) => Promise<void>)[] = []
  /** The error of each schedule whose last run has failed: a repeated one is not logged again. */
  const failures = new Map<string, string>()

  const runner = createJobRunner({
    clock,
    log,
    replica,
    target: 'schedule',
    async run(id, nextStep) {
      if (nextStep() === undefined) return undefined
      const key = toKey(id)
      return replica.isShared ? evaluateAlone(id, key) : evaluate(id, key)
    },
    async listDueIds(now) {
      for (const prepare of beforeList) await prepare(now)
      return (await listDueSchedules(db, now)).map(toId)
    },
    findNextDueTime: async (now) =>
      Math.min((await findNextDueTime(db, now)) ?? Number.POSITIVE_INFINITY, now + MAX_INTERVAL_MS),
  })

  const unsubscribe = subscribeToDueTimes(db, runner.scheduleAt, { onGap: runner.runDue })

  async function evaluate(id: string, key: ScheduleKey): Promise<number | undefined> {
    try {
      const handler = handlers.get(key.kind)
      if (handler === undefined) return await move(key, RETRY_UNKNOWN_KIND_MS)
      const nextAt = await handler(key.target_id, closing.signal)
      if (failures.delete(id)) log.info(toFields(key), 'a schedule that had failed runs again')
      return nextAt
    } catch (err) {
      if (closing.signal.aborted) return undefined
      const failure = String(err)
      if (failures.get(id) !== failure)
        log.error({ err, ...toFields(key) }, 'failed to run a schedule; will retry')
      failures.set(id, failure)
      return await move(key, RETRY_AFTER_FAILURE_MS)
    }
  }

  /** Other coordinators list the same schedules. */
  async function evaluateAlone(id: string, key: ScheduleKey): Promise<number | undefined> {
    const now = clock.now()
    if (elsewhere.get(key.kind)?.(key.target_id)) return now + RETRY_ELSEWHERE_MS
    if (!(await claimSchedule(db, key, { owner: replica.id, now }))) return now + RETRY_CLAIMED_MS
    try {
      return await evaluate(id, key)
    } finally {
      await releaseSchedule(db, key, replica.id)
    }
  }

  async function move(key: ScheduleKey, ms: number): Promise<number> {
    const dueAt = clock.now() + ms
    await moveSchedule(db, key, dueAt)
    return dueAt
  }

  async function prune(name: string, signal: AbortSignal): Promise<number | undefined> {
    const key = { kind: 'prune', target_id: name }
    const pruner = pruners.get(name)
    // Another version of the coordinator has written the schedule. Its next start writes it again.
    if (pruner === undefined) return transaction(db, (trx) => deleteSchedule(trx, key)).then(() => undefined)
    await pruner(signal)
    return signal.aborted ? undefined : move(key, PRUNE_INTERVAL_MS)
  }

  return {
    add(schedules) {
      for (const [kind, handler] of Object.entries(schedules.handlers ?? {})) {
        addOnce(handlers, kind, handler)
        if (schedules.isElsewhere) elsewhere.set(kind, schedules.isElsewhere)
      }
      for (const [name, pruner] of Object.entries(schedules.pruners ?? {})) addOnce(pruners, name, pruner)
      if (schedules.beforeList) beforeList.push(schedules.beforeList)
    },
    async start() {
      const due_at = clock.now()
      await transaction(db, async (trx) => {
        for (const target_id of pruners.keys())
          await insertMissingSchedule(trx, { kind: 'prune', target_id, due_at })
      })
      runner.runDue()
    },
    runDue: runner.runDue,
    async close() {
      closing.abort()
      unsubscribe()
      await runner.close()
    },
  }
}

function addOnce<T>(map: Map<string, T>, name: string, value: T): void {
  if (map.has(name)) throw new Error(`Two features have a schedule with the name ${name}.`)
  map.set(name, value)
}
