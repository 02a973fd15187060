// Quiet hours: suspends the boxes of a workspace at the times that its policy quietHours names.
import { isDeepStrictEqual } from 'node:util'
import type { BackgroundTasks } from '../../../base/background-tasks.ts'
import type { Module, ModuleBase } from '../../../http/module.ts'
import { subscribeToPolicies } from '../../../identity/policies/service.ts'
import type { Lifecycle } from '../../lifecycle/lifecycle.ts'
import { createQuietHours } from './quiet-hours.ts'

export type QuietHoursModuleContext = ModuleBase & {
  background: Pick<BackgroundTasks, 'run'>
  lifecycle: Pick<Lifecycle, 'schedule'>
}

export function quietHoursModule(context: QuietHoursModuleContext): Module {
  const { db, clock, log, background, lifecycle } = context
  const quietHours = createQuietHours({
    db,
    clock,
    log,
    scheduleBox: lifecycle.schedule,
  })
  subscribeToPolicies(
    db,
    ({ workspaceId, policy, before }, origin) => {
      // The coordinator that has committed the change writes the schedule.
      if (origin === 'elsewhere' || isDeepStrictEqual(policy.quietHours, before.quietHours)) return
      background.run('schedule the quiet hours of a workspace', () => quietHours.reschedule(workspaceId))
    },
    { onGap: () => undefined },
  )
  return {
    schedules: { handlers: { quiet_hours: quietHours.handleSchedule } },
    start: quietHours.scheduleAll,
  }
}
