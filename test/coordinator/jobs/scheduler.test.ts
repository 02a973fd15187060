// The log of schedules that fail: one line for each failure, however often it repeats.
import { pino } from 'pino'
import t from 'tap'
import { createScheduler } from '../../../coordinator/jobs/scheduler.ts'
import { createFakeReplica } from '../../support/replica.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createTestClock } from '../../support/workspace.ts'

t.test('a schedule that keeps failing is logged once for each error', async (t) => {
  const db = await sqliteForTest(t)
  const clock = createTestClock()
  const lines: string[] = []
  const log = pino(
    { level: 'info' },
    {
      write(line: string) {
        const { msg, err } = JSON.parse(line)
        lines.push(err === undefined ? msg : `${msg}: ${err.message}`)
      },
    },
  )
  const scheduler = createScheduler({ db, clock, log, replica: createFakeReplica() })
  t.teardown(() => scheduler.close())
  let error: Error | null = new Error('the time zone is unknown')
  scheduler.add({
    handlers: {
      async quiet_hours() {
        if (error !== null) throw error
        await db
          .updateTable('schedules')
          .set({ due_at: clock.now() + 60_000 })
          .execute()
        return undefined
      },
    },
  })
  await db.insertInto('schedules').values({ kind: 'quiet_hours', target_id: 'wsp_1', due_at: 0 }).execute()
  async function run(): Promise<void> {
    clock.advance(60_000)
    scheduler.runDue()
    await waitUntil('the schedule is moved', async () => {
      const { due_at } = await db.selectFrom('schedules').select('due_at').executeTakeFirstOrThrow()
      return due_at > clock.now()
    })
  }
  await scheduler.start()
  for (let i = 0; i < 3; i += 1) await run()
  t.same(lines.splice(0), ['failed to run a schedule; will retry: the time zone is unknown'])
  error = new Error('the database is full')
  for (let i = 0; i < 2; i += 1) await run()
  t.same(lines.splice(0), ['failed to run a schedule; will retry: the database is full'])
  error = null
  for (let i = 0; i < 2; i += 1) await run()
  await waitUntil('the recovery is logged', () => lines.length > 0)
  t.same(lines.splice(0), ['a schedule that had failed runs again'])
  error = new Error('the database is full')
  await run()
  t.same(lines, ['failed to run a schedule; will retry: the database is full'])
})
