// The queries of the team status read the rows of the response, and no history and no deleted boxes.

import { sql } from 'kysely'
import t from 'tap'
import { findCycle } from '../../../coordinator/base/billing-cycle.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { createTeamService } from '../../../coordinator/team/service.ts'
import { systemClock as clock } from '../../../shared/clock.ts'
import { onEachDatabase } from '../../support/db.ts'
import { fillBoxes } from '../../support/fill-boxes.ts'
import { createTestFinances } from '../../support/finances.ts'
import { capturePlans } from '../../support/query-plan.ts'
import { addUser, createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

const WEEK_MS = 7 * 24 * 3_600_000
const YEAR_END = Date.UTC(2030, 11, 28, 12)

/** Of each box: an event and a total of each seventh day, the totals of the months, and a meter that began 36 seconds ago. */
async function fillYear(db: Db): Promise<void> {
  const day = (week: number) => new Date(YEAR_END - week * WEEK_MS).toISOString().slice(0, 10)
  const weeks = Array.from({ length: 52 }, (_, week) => week)
  const periods = [...weeks.map(day), ...new Set(weeks.map((week) => day(week).slice(0, 7)))]
  for (const period of periods)
    await sql`insert into billing_totals (workspace_id, period, box_id, user_id, amount_micros, compute_seconds)
      select workspace_id, ${period}, id, owner_user_id, ${sql.lit(period.length === 7 ? 30_000 : 1000)}, 60
      from boxes`.execute(db)
  for (const week of weeks)
    await sql`insert into box_events (box_id, from_state, to_state, reason, actor, at)
      select id, 'suspended', 'running', 'the box was woken', 'system', ${sql.lit(YEAR_END - week * WEEK_MS)}
      from boxes`.execute(db)
  await sql`insert into billing_meters (subject_id, workspace_id, box_id, user_id, mode, tier, megabytes, since, carry)
    select id, workspace_id, id, owner_user_id, 'compute', 'nano', 0, ${sql.lit(YEAR_END / 1000 - 36)}, 0
    from boxes where terminated_at is null`.execute(db)
  await sql`analyze`.execute(db)
}

onEachDatabase(t, async (t, newDb) => {
  t.test('the team status of a workspace, and of a contractor', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    const owner = await createOwner(db)
    const contractor = await addUser(db, owner, { role: 'contractor' })
    const boxes = createTestBoxService(db)
    for (const actor of [owner, contractor]) for (let i = 0; i < 2; i++) await boxes.create(actor, {})
    const team = createTeamService({
      db,
      clock,
      log: { error: () => t.fail('a failure was logged') },
      members: { list: async () => [] },
      latestHeartbeat: () => undefined,
      countSessions: async () => new Map(),
      billing: null,
    })
    for (const actor of [owner, contractor]) {
      await readPlans()
      const { boxes: shown } = JSON.parse(await team.load(actor))
      t.equal(shown.length, actor === owner ? 4 : 2)
      const plans = (await readPlans()).join('\n')
      t.match(plans, /boxes_live/)
      t.match(plans, /commands_by_box/)
      t.notMatch(plans, /Seq Scan on (boxes|commands|users|audit_log|last_prompts)/)
      t.notMatch(plans, /^SCAN (boxes|commands|users|audit_log|last_prompts)\b/m)
    }
    const row = { id: (await boxes.list(owner))[0]?.id ?? '', workspace_id: owner.workspaceId }
    await team.recordPrompt(row)
    await team.recordPrompt(row)
    t.equal((await db.selectFrom('last_prompts').selectAll().execute()).length, 1)
  })

  t.test('with billing, 1,000 boxes and a year of their events and totals', async (t) => {
    const plain = await newDb(t)
    const { db, readPlans } = capturePlans(plain)
    const clock = createTestClock(YEAR_END)
    const owner = await createOwner(plain, clock)
    const { id: boxId } = await createTestBoxService(plain, { clock }).create(owner, {})
    await fillBoxes(plain, { boxId, boxes: 1249, commands: 1000 })
    await fillYear(plain)
    const finances = createTestFinances(db, clock)
    const team = createTeamService({
      db,
      clock,
      log: { error: () => t.fail('a failure was logged') },
      members: { list: async () => [] },
      latestHeartbeat: () => undefined,
      countSessions: async () => new Map(),
      billing: { finances },
    })
    await finances.loadSpend(owner.workspaceId)
    await readPlans()
    const { boxes, totals } = JSON.parse(await team.load(owner))
    t.equal(boxes.length, 1000)
    t.equal(boxes[0].spendCycleMicros, 30_000 + 100, 'the total of the month, and what is not charged yet')
    t.ok(totals.spendTodayMicros < totals.spendCycleMicros)
    const plans = (await readPlans()).join('\n')
    t.match(plans, /SEARCH billing_totals USING|billing_totals_pk/)
    t.match(plans, /billing_meters_by_workspace/)
    t.match(plans, /boxes_live/)
    t.notMatch(plans, /Seq Scan|^SCAN (?!\d+-ROW VALUES)/m)
    t.notMatch(plans, /box_events|billing_entries/, 'the spend comes from the totals')
  })

  t.test('a failure to record a prompt is logged', async (t) => {
    const db = await newDb(t)
    const logged: unknown[] = []
    const team = createTeamService({
      db,
      clock,
      log: { error: (fields: object) => void logged.push(fields) },
      members: { list: async () => [] },
      latestHeartbeat: () => undefined,
      countSessions: async () => new Map(),
      billing: null,
    })
    await team.recordPrompt({ id: 'deleted', workspace_id: 'ws_0' })
    t.match(logged, [{ boxId: 'deleted' }])
  })
})

t.test('the billing cycle is the calendar month in UTC', async (t) => {
  t.same(findCycle(Date.UTC(2029, 11, 31, 23, 59, 59, 999)), {
    start: '2029-12-01T00:00:00.000Z',
    end: '2030-01-01T00:00:00.000Z',
  })
  t.same(findCycle(Date.UTC(2030, 0, 1)).start, '2030-01-01T00:00:00.000Z')
})
