// The schedules of boxes: deadlines, deletions, idle times, automatic snapshots, deep sleep.

import type { Module, ModuleBase } from '../../http/module.ts'
import type { Heartbeats } from '../lifecycle/heartbeats.ts'
import type { Lifecycle } from '../lifecycle/lifecycle.ts'
import type { BoxService } from '../service.ts'
import type { BoxSettings } from '../settings.ts'
import { type BoxScheduleHandlersOptions, createBoxScheduleHandlers } from './schedules.ts'

export type BoxSchedulesModuleContext = ModuleBase & { config: BoxSettings } & Pick<
    BoxScheduleHandlersOptions,
    'tunnels' | 'replica' | 'pauseGate' | 'snapshots' | 'memory'
  > & {
    heartbeats: Pick<Heartbeats, 'latest'>
    lifecycle: Pick<Lifecycle, 'schedule'>
    boxes: Pick<BoxService, 'removeBySystem'>
  }

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

export function boxSchedulesModule(context: BoxSchedulesModuleContext): Module {
  const { config, db, clock, log, replica, tunnels, pauseGate, snapshots, heartbeats, lifecycle, memory } =
    context
  return {
    schedules: createBoxScheduleHandlers({
      db,
      clock,
      log,
      replica,
      tunnels,
      pauseGate,
      snapshots,
      settings: { freezeMs: config.freezeMinutes * MINUTE_MS, deepSleepMs: config.deepSleepDays * DAY_MS },
      memory,
      findLastActivity(boxId) {
        const heartbeat = heartbeats.latest(boxId)
        return heartbeat ? heartbeat.at - heartbeat.vitals.idle_for_sec * 1000 : null
      },
      removeBox: context.boxes.removeBySystem,
      scheduleBox: lifecycle.schedule,
    }),
  }
}
