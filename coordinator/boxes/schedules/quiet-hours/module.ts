// Quiet hours: suspends the boxes of a workspace at the times that its policy quietHours names.
import { isDeepStrictEqual } from 'node:util'
import type { BackgroundTasks } from '../../../base/background-tasks.ts'
import type { Module, ModuleBase } from '../../../http/module.ts'
import type { PolicyService } from '../../../identity/policies/service.ts'
import type { Scheduler } from '../../../jobs/scheduler.ts'
import type { Lifecycle } from '../../lifecycle/lifecycle.ts'
import { createQuietHours } from './quiet-hours.ts'

export type QuietHoursModuleContext = ModuleBase & {
  background: Pick<BackgroundTasks, 'run'>
  policies: Pick<PolicyService, 'events'>
  lifecycle: Pick<Lifecycle, 'schedule'>
  scheduler: Pick<Scheduler, 'scheduleAt'>
}

export function quietHoursModule(context: QuietHoursModuleContext): Module {
  const { db, clock, log, background, policies, lifecycle, scheduler } = context
  const quietHours = createQuietHours({
    db,
    clock,
    log,
    scheduleBox: lifecycle.schedule,
    onSchedule: scheduler.scheduleAt,
  })
  policies.events.on('changed', (workspaceId, policy, before) => {
    if (isDeepStrictEqual(policy.quietHours, before.quietHours)) return
    background.run('schedule the quiet hours of a workspace', () => quietHours.reschedule(workspaceId))
  })
  return {
    schedules: { handlers: { quiet_hours: quietHours.handleSchedule } },
    start: quietHours.scheduleAll,
  }
}
