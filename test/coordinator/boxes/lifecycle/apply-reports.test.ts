// Reports and heartbeats of agents, and the retention of state events.
import t from 'tap'
import { applyReports, type BoxReports } from '../../../../coordinator/boxes/lifecycle/apply-reports.ts'
import { createHeartbeats } from '../../../../coordinator/boxes/lifecycle/heartbeats.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import type { Vitals } from '../../../../shared/api/boxes.ts'
import { newUuid } from '../../../../shared/ids.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { noReportHandlers } from '../../../support/report-handlers.ts'
import { createRestartableLifecycle } from '../../../support/restartable-lifecycle.ts'
import { createTestBoxService, createTestClock } from '../../../support/workspace.ts'

const agentStarted = (instanceId: string) =>
  ({ type: 'agent.started', at: 1, instanceId, bootId: `boot-${instanceId}`, agentVersion: '1.2.3' }) as const
const vitals = (cpu_pct: number): Vitals => ({
  cpu_pct,
  mem_pct: 2,
  disk_pct: 3,
  idle_for_sec: 4,
  listeners_count: 5,
  agent_version: '1.2.3',
})

const apply = (db: Db, boxId: string, epoch: string, reports: BoxReports['reports']) =>
  applyReports(db, noReportHandlers, [{ boxId, epoch, reports }])

onEachDatabase(t, async (t, newDb) => {
  t.test('applies each report once, even when it is sent again', async (t) => {
    const { db, owner, boxes } = await createRestartableLifecycle(t, await newDb(t))
    const { id } = await boxes.create(owner, {})
    const readRow = () =>
      db
        .selectFrom('boxes')
        .select(['boot_id', 'report_epoch', 'report_seq'])
        .where('id', '=', id)
        .executeTakeFirst()
    await apply(db, id, 'e1', [
      { seq: 1, report: agentStarted('a') },
      { seq: 2, report: agentStarted('b') },
    ])
    t.match(await readRow(), { boot_id: 'boot-b', report_epoch: 'e1', report_seq: 2 })
    await apply(db, id, 'e1', [{ seq: 1, report: agentStarted('a') }])
    t.match(await readRow(), { boot_id: 'boot-b', report_seq: 2 }, 'a report sent again is skipped')
    await Promise.all([3, 4].map((seq) => apply(db, id, 'e1', [{ seq, report: agentStarted('c') }])))
    t.match(await readRow(), { report_seq: 4 })
    await apply(db, id, 'e2', [{ seq: 1, report: agentStarted('d') }])
    t.match(
      await readRow(),
      { boot_id: 'boot-d', report_epoch: 'e2', report_seq: 1 },
      'a new epoch restarts the sequence',
    )
    await apply(db, newUuid(), 'e1', [{ seq: 1, report: agentStarted('a') }])
  })

  t.test('a box shows its latest vitals before and after they are written to the database', async (t) => {
    const { db, owner, boxes } = await createRestartableLifecycle(t, await newDb(t))
    const clock = createTestClock()
    const log = { error: () => t.fail('an error was logged') }
    const heartbeats = createHeartbeats({ db, clock, log, flushMs: 1_000_000 })
    const [first, second] = [
      await boxes.create(owner, { name: 'one' }),
      await boxes.create(owner, { name: 'two' }),
    ]
    const boxesWithHeartbeats = createTestBoxService(db, { latestHeartbeat: heartbeats.latest })
    heartbeats.record(first.id, vitals(1))
    clock.advance(1000)
    heartbeats.record(first.id, vitals(2))
    heartbeats.record(second.id, vitals(3))
    t.match(
      await boxesWithHeartbeats.get(owner, first.id),
      { vitals: { cpu_pct: 2 } },
      'a heartbeat is visible before it is written',
    )
    t.equal((await boxes.get(owner, first.id)).vitals, null)
    await heartbeats.close()
    t.match(await boxes.get(owner, first.id), {
      vitals: vitals(2),
      state: { lastHeartbeatAt: '2030-01-01T00:00:01.000Z' },
    })
    t.match(await boxes.get(owner, second.id), { vitals: vitals(3) })
  })

  t.test('retains the last 50 state events', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { db, infra, owner, boxes, startLifecycle, waitForState, getDetail } = lifecycle
    infra.canFreeze = true
    await startLifecycle()
    const { id } = await boxes.create(owner, {})
    await waitForState(id, 'running')
    for (let i = 0; i < 13; i++) {
      await boxes.suspend(owner, id)
      await waitForState(id, 'suspended')
      await boxes.wake(owner, id)
      await waitForState(id, 'running')
    }
    const { events, pausesSurvived } = await getDetail(id)
    t.equal(events.length, 50)
    t.equal(pausesSurvived, 13)
    t.equal(events[0]?.toState, 'running')
    for (const [i, event] of events.slice(0, -1).entries()) t.equal(event.fromState, events[i + 1]?.toState)
    t.equal((await db.selectFrom('box_events').select('seq').execute()).length, 50)
  })
})
