// Schedules of several coordinators on one database: one evaluates a schedule, and another one when that has stopped.
import t from 'tap'
import { createScheduler } from '../../../coordinator/jobs/scheduler.ts'
import { systemClock } from '../../../shared/clock.ts'
import { onEachDatabase } from '../../support/db.ts'
import { addReplica, startSharedReplica } from '../../support/replica.ts'
import { waitUntil } from '../../support/wait-until.ts'

const LOG = { info() {}, error() {} }
const HOUR_MS = 60 * 60_000

await onEachDatabase(t, async (t, newDb) => {
  await t.test('a due schedule is evaluated by one coordinator at a time', async (t) => {
    const db = await newDb(t)
    const replicas = await Promise.all([1, 2, 3].map(() => startSharedReplica(db)))
    let running = 0
    let runs = 0
    const concurrent: number[] = []
    const released = Promise.withResolvers<void>()
    const schedulers = replicas.map((replica) => {
      const scheduler = createScheduler({ db, clock: systemClock, log: LOG, replica })
      scheduler.add({
        handlers: {
          async quiet_hours(targetId) {
            concurrent.push(++running)
            runs += 1
            await released.promise
            running -= 1
            await db.deleteFrom('schedules').where('target_id', '=', targetId).execute()
            return undefined
          },
        },
      })
      return scheduler
    })
    await db.insertInto('schedules').values({ kind: 'quiet_hours', target_id: 'a', due_at: 0 }).execute()
    for (const scheduler of schedulers) scheduler.runDue()
    await waitUntil('one coordinator evaluates the schedule', () => runs > 0)
    for (const scheduler of schedulers) scheduler.runDue()
    await db.selectFrom('schedules').selectAll().execute()
    released.resolve()
    await waitUntil('the evaluation ends', () => running === 0)
    await Promise.all(schedulers.map((scheduler) => scheduler.close()))
    t.same(concurrent, [1])
    await Promise.all(replicas.map((replica) => replica.close()))
  })

  await t.test('a schedule of a coordinator that is not alive is evaluated by another one', async (t) => {
    const db = await newDb(t)
    const replica = await startSharedReplica(db)
    await addReplica(db, 'killed', HOUR_MS)
    const row = { kind: 'quiet_hours', target_id: 'a', due_at: 0, lease_owner: 'killed' }
    await db.insertInto('schedules').values(row).execute()
    const evaluated: string[] = []
    const scheduler = createScheduler({ db, clock: systemClock, log: LOG, replica })
    scheduler.add({
      handlers: {
        async quiet_hours(targetId) {
          evaluated.push(targetId)
          await db.deleteFrom('schedules').execute()
          return undefined
        },
        async other(targetId) {
          evaluated.push(targetId)
          await db.deleteFrom('schedules').where('kind', '=', 'other').execute()
          return undefined
        },
      },
    })
    await db.insertInto('schedules').values({ kind: 'other', target_id: 'b', due_at: 0 }).execute()
    scheduler.runDue()
    await waitUntil('the free schedule is evaluated', () => evaluated.length > 0)
    t.same(evaluated, ['b'], 'the other one belongs to a coordinator that is alive')
    await addReplica(db, 'killed', -1)
    scheduler.runDue()
    await waitUntil('the other schedule is evaluated', () => evaluated.length > 1)
    t.same(evaluated, ['b', 'a'])
    await scheduler.close()
    await replica.close()
  })

  await t.test('a schedule of what is elsewhere is left to the other coordinator', async (t) => {
    const db = await newDb(t)
    const replica = await startSharedReplica(db)
    const evaluated: string[] = []
    const scheduler = createScheduler({ db, clock: systemClock, log: LOG, replica })
    scheduler.add({
      handlers: {
        async auto_pause(targetId) {
          evaluated.push(targetId)
          await db.deleteFrom('schedules').where('target_id', '=', targetId).execute()
          return undefined
        },
      },
      isElsewhere: (targetId) => targetId === 'elsewhere',
    })
    const rows = ['elsewhere', 'here'].map((target_id) => ({ kind: 'auto_pause', target_id, due_at: 0 }))
    await db.insertInto('schedules').values(rows).execute()
    scheduler.runDue()
    await waitUntil('the schedule is evaluated', () => evaluated.length > 0)
    await scheduler.close()
    t.same(evaluated, ['here'])
    await replica.close()
  })
})
