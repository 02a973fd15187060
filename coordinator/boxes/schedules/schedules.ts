// The schedules of boxes: suspends, stops, archives and snapshots boxes at set times.
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import type { Tunnels } from '../../agents/tunnel/types.ts'
import type { MemoryPressure } from '../../base/memory-pressure.ts'
import type { Db } from '../../db/open.ts'
import type { Schedules } from '../../http/module.ts'
import { moveSchedule } from '../../jobs/schedules.ts'
import type { Replica } from '../../replicas/replica.ts'
import { BOX_SCHEDULE_KINDS, type BoxScheduleKind } from '../lifecycle/update-schedules.ts'
import { findOldestFrozenBoxId } from '../store/boxes.ts'
import { readIdleSeconds } from './ask-agent.ts'
import { type BoxSchedulesOptions, createBoxSchedules } from './box-schedules.ts'
import type { ScheduleSettings } from './evaluate.ts'
import type { PauseGate } from './pause-gate.ts'

export type BoxScheduleHandlersOptions = BoxSchedulesOptions & {
  db: Db
  clock: Clock
  log: Pick<Logger, 'info' | 'error'>
  settings: ScheduleSettings
  tunnels: Pick<Tunnels, 'current' | 'local'>
  replica: Pick<Replica, 'host'>
  pauseGate: PauseGate
  memory: MemoryPressure
  /** Returns when the box was last active, by its last heartbeat, in milliseconds since the epoch; null: unknown. */
  findLastActivity(boxId: string): number | null
}

/** The delay of a retry when the agent has not responded. */
const RETRY_MS = 60_000
/** The delay of a retry when a request to the box was in flight. */
const REQUEST_RETRY_MS = 5_000

export function createBoxScheduleHandlers(options: BoxScheduleHandlersOptions): Schedules {
  const { db, clock, log, replica, settings, tunnels, pauseGate, memory, findLastActivity } = options
  const runBoxSchedule = createBoxSchedules(options)
  /** The frozen box to stop because the memory is scarce. */
  let boxToStop: string | undefined

  const getFacts = (boxId: string, lastActiveAt: number | null) => ({
    settings,
    lastActiveAt,
    now: clock.now(),
    isMemoryScarce: boxId === boxToStop,
  })

  const createHandler = (kind: BoxScheduleKind) => async (boxId: string) =>
    (await runBoxSchedule({ kind, boxId, facts: getFacts(boxId, null) })).nextAt

  async function movePause(boxId: string, ms: number): Promise<number> {
    const dueAt = clock.now() + ms
    await moveSchedule(db, { kind: 'auto_pause', target_id: boxId }, dueAt)
    return dueAt
  }

  /**
   * The heartbeat may be some seconds old, so the coordinator requests the idle time from the agent before the pause. Without a
   * response, commands may run.
   */
  async function autoPause(boxId: string, signal: AbortSignal): Promise<number | undefined> {
    const schedule = { kind: 'auto_pause', boxId } as const
    const facts = getFacts(boxId, findLastActivity(boxId))
    const { isDue, nextAt } = await runBoxSchedule({ ...schedule, facts, isDryRun: true })
    if (!isDue) return nextAt
    const result = await pauseGate.run(boxId, async () => {
      const idleSeconds = await readIdleSeconds(boxId, tunnels, signal).catch((err: unknown) => {
        log.info({ err, boxId }, 'an agent did not report whether its box is idle; will retry')
        return null
      })
      if (idleSeconds === null) return { nextAt: await movePause(boxId, RETRY_MS) }
      return runBoxSchedule({ ...schedule, facts: getFacts(boxId, clock.now() - idleSeconds * 1000) })
    })
    return result === 'busy' ? movePause(boxId, REQUEST_RETRY_MS) : result.nextAt
  }

  /** Makes the schedule of the box of this machine that has been frozen for the longest time due. */
  async function checkMemory(now: number): Promise<void> {
    const isScarce = await memory.isUnderMemoryPressure().catch((err: unknown) => {
      log.error({ err }, 'failed to read the memory usage of the machine; will retry')
      return false
    })
    boxToStop = isScarce ? await findOldestFrozenBoxId(db, replica.host) : undefined
    if (boxToStop !== undefined) await moveSchedule(db, { kind: 'stop_frozen', target_id: boxToStop }, now)
  }

  return {
    handlers: {
      ...Object.fromEntries(BOX_SCHEDULE_KINDS.map((kind) => [kind, createHandler(kind)])),
      auto_pause: autoPause,
    },
    // The coordinator with the tunnel knows the requests in flight.
    isElsewhere: (boxId) => tunnels.local(boxId) === undefined && tunnels.current(boxId) !== undefined,
    beforeList: checkMemory,
  }
}
