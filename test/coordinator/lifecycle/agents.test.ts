// What agents present and report: tokens, reports applied once, heartbeats.
import t from 'tap'
import { hashOf } from '../../../coordinator/account/keys.ts'
import type { ReportedCommands } from '../../../coordinator/commands/commands.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import {
  applyReports,
  type BoxReports,
  createAgentAuthenticator,
} from '../../../coordinator/lifecycle/agents.ts'
import { createHeartbeats } from '../../../coordinator/lifecycle/heartbeats.ts'
import type { Vitals } from '../../../shared/api/boxes.ts'
import { newUuid } from '../../../shared/ids.ts'
import { setUp } from '../../support/coordinators.ts'
import { onEachDatabase } from '../../support/db.ts'
import { boxesOf, testClock } from '../../support/workspace.ts'

const started = (instanceId: string) =>
  ({ type: 'agent.started', at: 1, instanceId, bootId: `boot-${instanceId}`, agentVersion: '1.2.3' }) as const
const vitals = (cpu_pct: number): Vitals => ({
  cpu_pct,
  mem_pct: 2,
  disk_pct: 3,
  idle_for_sec: 4,
  listeners_count: 5,
  agent_version: '1.2.3',
})

const noCommands: ReportedCommands = { load: async () => undefined, apply: async () => undefined }
const apply = (db: Db, boxId: string, epoch: string, reports: BoxReports['reports']) =>
  applyReports(db, noCommands, [{ boxId, epoch, reports }])

onEachDatabase(t, async (t, newDb) => {
  t.test('a token is valid for its box alone, from the machine on until the delete', async (t) => {
    const { db, world, owner, boxes, newLife, until } = await setUp(t, await newDb(t))
    const authenticate = createAgentAuthenticator(db)
    const [one, two] = [await boxes.create(owner, {}), await boxes.create(owner, {})]
    t.equal(await authenticate(one.id, ''), false)
    await newLife()
    await until(one.id, 'running')
    await until(two.id, 'running')
    const token = hashOf(world.machines.get(one.id)?.token ?? '')
    t.equal(await authenticate(one.id, token), true)
    t.equal(await authenticate(two.id, token), false)
    t.equal(await authenticate(newUuid(), token), false)
    t.equal(await authenticate(one.id, hashOf('bxt_other')), false)
    await boxes.remove(owner, one.id)
    await until(one.id, 'terminated')
    t.equal(await authenticate(one.id, token), false)
    t.equal(world.tunnels.current(one.id), undefined)
  })

  t.test('each report is applied once, whatever is sent again', async (t) => {
    const { db, owner, boxes } = await setUp(t, await newDb(t))
    const { id } = await boxes.create(owner, {})
    const row = () =>
      db
        .selectFrom('boxes')
        .select(['boot_id', 'report_epoch', 'report_seq'])
        .where('id', '=', id)
        .executeTakeFirst()
    await apply(db, id, 'e1', [
      { seq: 1, report: started('a') },
      { seq: 2, report: started('b') },
    ])
    t.match(await row(), { boot_id: 'boot-b', report_epoch: 'e1', report_seq: 2 })
    await apply(db, id, 'e1', [{ seq: 1, report: started('a') }])
    t.match(await row(), { boot_id: 'boot-b', report_seq: 2 }, 'sent again')
    await Promise.all(
      [3, 4].map((seq) =>
        apply(
          db,
          id,
          'e1',
          [{ seq: 3, report: started('c') }].map((r) => ({ ...r, seq })),
        ),
      ),
    )
    t.match(await row(), { report_seq: 4 })
    await apply(db, id, 'e2', [{ seq: 1, report: started('d') }])
    t.match(
      await row(),
      { boot_id: 'boot-d', report_epoch: 'e2', report_seq: 1 },
      'a box that lost its state',
    )
    await apply(db, newUuid(), 'e1', [{ seq: 1, report: started('a') }])
  })

  t.test("heartbeats are written together, each box's last", async (t) => {
    const { db, owner, boxes } = await setUp(t, await newDb(t))
    const clock = testClock()
    const log = { error: () => t.fail('an error was logged') }
    const heartbeats = createHeartbeats({ db, clock, log, flushMs: 1_000_000 })
    const [one, two] = [
      await boxes.create(owner, { name: 'one' }),
      await boxes.create(owner, { name: 'two' }),
    ]
    const seen = boxesOf(db, { heartbeat: heartbeats.latest })
    heartbeats.record(one.id, vitals(1))
    clock.advance(1000)
    heartbeats.record(one.id, vitals(2))
    heartbeats.record(two.id, vitals(3))
    t.match(await seen.get(owner, one.id), { vitals: { cpu_pct: 2 } }, 'shown before it is written')
    t.equal((await boxes.get(owner, one.id)).vitals, null)
    await heartbeats.close()
    t.match(await boxes.get(owner, one.id), {
      vitals: vitals(2),
      state: { lastHeartbeatAt: '2030-01-01T00:00:01.000Z' },
    })
    t.match(await boxes.get(owner, two.id), { vitals: vitals(3) })
  })

  t.test('the last 50 state changes are kept', async (t) => {
    const { db, owner, boxes, newLife, until, detail } = await setUp(t, await newDb(t))
    await newLife()
    const { id } = await boxes.create(owner, {})
    await until(id, 'running')
    for (let i = 0; i < 13; i++) {
      await boxes.suspend(owner, id)
      await until(id, 'suspended')
      await boxes.wake(owner, id)
      await until(id, 'running')
    }
    const { events, pausesSurvived } = await detail(id)
    t.equal(events.length, 50)
    t.equal(pausesSurvived, 13)
    t.equal(events[0]?.toState, 'running')
    for (const [i, event] of events.slice(0, -1).entries()) t.equal(event.fromState, events[i + 1]?.toState)
    t.equal((await db.selectFrom('box_events').select('seq').execute()).length, 50)
  })
})
