// Runs the schedules of all modules.
import type { Module, ModuleBase, ModuleRegistry } from '../http/module.ts'
import { createScheduler, type Scheduler, type SchedulerOptions } from './scheduler.ts'

/** This module is one of the first, because other modules write schedules. */
export function schedulerModule({ db, clock, log, replica }: ModuleBase & Pick<SchedulerOptions, 'replica'>) {
  const scheduler: Scheduler = createScheduler({ db, clock, log, replica })
  return { services: { scheduler } } satisfies Module
}

export type ScheduleRunnerContext = { scheduler: Scheduler; modules: Pick<ModuleRegistry, 'all'> }

/** This module is the last one: its schedules use all other modules, so it is started after them and closed before them. */
export function scheduleRunnerModule({ scheduler, modules }: ScheduleRunnerContext): Module {
  for (const { schedules } of modules.all) if (schedules) scheduler.add(schedules)
  return {
    start: scheduler.start,
    drain: scheduler.close,
    close: { name: 'stop the schedules', run: scheduler.close },
  }
}
