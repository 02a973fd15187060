// The schedules of boxes: deadlines, deletions, idle times, automatic snapshots, deep sleep.

import type { Module, ModuleBase } from '../../http/module.ts'
import type { Heartbeats } from '../lifecycle/heartbeats.ts'
import type { Lifecycle } from '../lifecycle/lifecycle.ts'
import { createMemoryPressure, type MemoryPressure } from '../lifecycle/memory-pressure.ts'
import type { BoxService } from '../service.ts'
import type { BoxSettings } from '../settings.ts'
import { type BoxScheduleHandlersOptions, createBoxScheduleHandlers } from './schedules.ts'

export type BoxSchedulesModuleContext = ModuleBase & { config: BoxSettings } & Pick<
    BoxScheduleHandlersOptions,
    'tunnels' | 'pauseGate' | 'snapshots'
  > & {
    heartbeats: Pick<Heartbeats, 'latest'>
    lifecycle: Pick<Lifecycle, 'schedule'>
    boxes: Pick<BoxService, 'removeBySystem'>
    overrides: { memory?: MemoryPressure }
  }

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

export function boxSchedulesModule(context: BoxSchedulesModuleContext): Module {
  const { config, db, clock, log, tunnels, pauseGate, snapshots, heartbeats, lifecycle, overrides } = context
  return {
    schedules: createBoxScheduleHandlers({
      db,
      clock,
      log,
      tunnels,
      pauseGate,
      snapshots,
      settings: { freezeMs: config.freezeMinutes * MINUTE_MS, deepSleepMs: config.deepSleepDays * DAY_MS },
      memory: overrides.memory ?? createMemoryPressure(),
      findLastActivity(boxId) {
        const heartbeat = heartbeats.latest(boxId)
        return heartbeat ? heartbeat.at - heartbeat.vitals.idle_for_sec * 1000 : null
      },
      removeBox: context.boxes.removeBySystem,
      scheduleBox: lifecycle.schedule,
    }),
  }
}
