// Runs the schedules when they are due: suspends, stops, archives and snapshots boxes, deletes what has expired, and erases what
// zero data retention does not store.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import { createJobRunner } from '../lifecycle/job-runner.ts'
import type { MemoryPressure } from '../lifecycle/memory-pressure.ts'
import type { Snapshots } from '../snapshots/snapshots.ts'
import type { Tunnels } from '../tunnel/types.ts'
import type { Erasure } from '../zero-data-retention/erasure.ts'
import { readIdleSeconds } from './ask-agent.ts'
import { createBoxSchedules } from './box-schedules.ts'
import type { ScheduleSettings } from './evaluate.ts'
import type { PauseGate } from './pause-gate.ts'
import {
  deleteSchedule,
  findNextDueTime,
  findOldestFrozenBoxId,
  insertMissingSchedule,
  listDueSchedules,
  lockSchedule,
  lockSnapshot,
  moveSchedule,
  type ScheduleKey,
  type ScheduleKind,
} from './store.ts'

/** Deletes what has expired. The signal aborts between two transactions. */
export type Pruner = (signal: AbortSignal) => Promise<unknown>

export type SchedulesOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'info' | 'error'>
  settings: ScheduleSettings
  tunnels: Pick<Tunnels, 'current'>
  pauseGate: PauseGate
  memory: MemoryPressure
  /** When the box was last active, by its last heartbeat, in milliseconds since the epoch; null: unknown. */
  findLastActivity(boxId: string): number | null
  /** Schedules the box for the reconciler. */
  scheduleBox(boxId: string): void
  snapshots: Pick<Snapshots, 'enqueueAutoSnapshot' | 'expireSnapshot'>
  pruners: Readonly<Record<string, Pruner>>
  erasure: Pick<Erasure, 'run'>
  /** Returns when to continue, in milliseconds since the epoch; undefined: the schedule has been deleted. */
  purgeWorkspace(workspaceId: string, signal: AbortSignal): Promise<number | undefined>
}

export type Schedules = {
  start(): Promise<void>
  /** Call it after writing a schedule that is due at this time, in milliseconds since the epoch. */
  scheduleAt(time: number): void
  /** Runs the schedules that are due. */
  runDue(): void
  /** Resolves when the running evaluations have finished. */
  close(): Promise<void>
}

const PRUNE_INTERVAL_MS = 60 * 60_000
/** After at most this time, schedules are found that were written without scheduleAt(). */
const MAX_INTERVAL_MS = 60_000
/** After a failure, and while an agent does not respond. */
const RETRY_MS = 60_000
/** After a request to the box was in flight. */
const REQUEST_RETRY_MS = 5_000

const toId = ({ kind, target_id }: ScheduleKey): string => `${kind} ${target_id}`
function toKey(id: string): ScheduleKey {
  const [kind, target_id = ''] = id.split(' ')
  return { kind: kind as ScheduleKind, target_id }
}

export function createSchedules(options: SchedulesOptions): Schedules {
  const {
    db,
    clock,
    log,
    settings,
    tunnels,
    pauseGate,
    memory,
    findLastActivity,
    snapshots,
    pruners,
    erasure,
  } = options
  const closing = new AbortController()
  const runBoxSchedule = createBoxSchedules(options)
  /** The frozen box to stop because the memory is scarce. */
  let boxToStop: string | undefined

  const runner = createJobRunner({
    clock,
    log,
    target: 'schedule',
    async run(id, nextStep) {
      if (nextStep() === undefined) return undefined
      const key = toKey(id)
      try {
        return await run(key)
      } catch (err) {
        if (closing.signal.aborted) return undefined
        log.error({ err, kind: key.kind, targetId: key.target_id }, 'failed to run a schedule; will retry')
        return await move(key, RETRY_MS)
      }
    },
    async listDueIds(now) {
      await checkMemory(now)
      return (await listDueSchedules(db, now)).map(toId)
    },
    findNextDueTime: async (now) =>
      Math.min((await findNextDueTime(db, now)) ?? Number.POSITIVE_INFINITY, now + MAX_INTERVAL_MS),
  })

  /** Returns when the schedule is evaluated next; undefined: it has been deleted. */
  async function run(key: ScheduleKey): Promise<number | undefined> {
    const { kind, target_id: targetId } = key
    if (kind === 'prune') return prune(key)
    if (kind === 'expire_snapshot') return expireSnapshot(key)
    if (kind === 'erase') return erase(key)
    if (kind === 'purge_workspace') return purgeWorkspace(key)
    if (kind === 'auto_pause') return autoPause(key)
    return (await runBoxSchedule({ kind, boxId: targetId, facts: getFacts(targetId, null) })).nextAt
  }

  async function move(key: ScheduleKey, ms: number): Promise<number> {
    const dueAt = clock.now() + ms
    await moveSchedule(db, key, dueAt)
    return dueAt
  }

  const getFacts = (boxId: string, lastActiveAt: number | null) => ({
    ...{ settings, lastActiveAt },
    now: clock.now(),
    isMemoryScarce: boxId === boxToStop,
  })

  /** The heartbeat may be some seconds old, so the agent is asked before the pause. Without its answer, commands may run. */
  async function autoPause(key: ScheduleKey): Promise<number | undefined> {
    const boxId = key.target_id
    const schedule = { kind: 'auto_pause', boxId } as const
    const facts = getFacts(boxId, findLastActivity(boxId))
    const { isDue, nextAt } = await runBoxSchedule({ ...schedule, facts, isDryRun: true })
    if (!isDue) return nextAt
    const result = await pauseGate.run(boxId, async () => {
      const idleSeconds = await readIdleSeconds(boxId, tunnels, closing.signal).catch((err: unknown) => {
        log.info({ err, boxId }, 'an agent did not report whether its box is idle; will retry')
        return null
      })
      if (idleSeconds === null) return { nextAt: await move(key, RETRY_MS) }
      return runBoxSchedule({ ...schedule, facts: getFacts(boxId, clock.now() - idleSeconds * 1000) })
    })
    return result === 'busy' ? move(key, REQUEST_RETRY_MS) : result.nextAt
  }

  const expireSnapshot = (key: ScheduleKey) =>
    transaction(db, async (trx) => {
      const now = clock.now()
      await lockSnapshot(trx, key.target_id)
      const row = await lockSchedule(trx, key)
      if (!row || row.due_at > now) return row?.due_at
      await deleteSchedule(trx, key)
      await snapshots.expireSnapshot(trx, key.target_id, now)
      return undefined
    })

  const findDueTime = (key: ScheduleKey) =>
    transaction(db, async (trx) => (await lockSchedule(trx, key))?.due_at)

  /** Runs again when it has been requested again meanwhile. */
  async function erase(key: ScheduleKey): Promise<number | undefined> {
    const requestedAt = await findDueTime(key)
    await erasure.run(key.target_id, closing.signal)
    if (closing.signal.aborted) return undefined
    return transaction(db, async (trx) => {
      const row = await lockSchedule(trx, key)
      if (row?.due_at === requestedAt) await deleteSchedule(trx, key)
      return row?.due_at === requestedAt ? undefined : row?.due_at
    })
  }

  async function prune(key: ScheduleKey): Promise<number | undefined> {
    const pruner = pruners[key.target_id]
    // Of another version.
    if (pruner === undefined) return transaction(db, (trx) => deleteSchedule(trx, key)).then(() => undefined)
    await pruner(closing.signal)
    return closing.signal.aborted ? undefined : move(key, PRUNE_INTERVAL_MS)
  }

  async function purgeWorkspace(key: ScheduleKey): Promise<number | undefined> {
    const dueAt = await options.purgeWorkspace(key.target_id, closing.signal)
    if (dueAt !== undefined) await moveSchedule(db, key, dueAt)
    return dueAt
  }

  /** Makes the schedule of the box that has been frozen for the longest time due. */
  async function checkMemory(now: number): Promise<void> {
    const isScarce = await memory.isUnderMemoryPressure().catch((err: unknown) => {
      log.error({ err }, 'failed to read the memory usage of the machine; will retry')
      return false
    })
    boxToStop = isScarce ? await findOldestFrozenBoxId(db) : undefined
    if (boxToStop !== undefined) await moveSchedule(db, { kind: 'stop_frozen', target_id: boxToStop }, now)
  }

  return {
    async start() {
      const due_at = clock.now()
      await transaction(db, async (trx) => {
        for (const target_id of Object.keys(pruners))
          await insertMissingSchedule(trx, { kind: 'prune', target_id, due_at })
      })
      runner.runDue()
    },
    scheduleAt: runner.scheduleAt,
    runDue: runner.runDue,
    async close() {
      closing.abort()
      await runner.close()
    },
  }
}
