// The queries of the team status read the rows of the response, and no history and no deleted boxes.
import t from 'tap'
import { findCycle } from '../../../../coordinator/base/billing-cycle.ts'
import { createTeamService } from '../../../../coordinator/boxes/team/service.ts'
import { systemClock as clock } from '../../../../shared/clock.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { capturePlans } from '../../../support/query-plan.ts'
import { addUser, createOwner, createTestBoxService } from '../../../support/workspace.ts'

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
      countAttachments: () => new Map(),
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

  t.test('a failure to record a prompt is logged', async (t) => {
    const db = await newDb(t)
    const logged: unknown[] = []
    const team = createTeamService({
      db,
      clock,
      log: { error: (fields: object) => void logged.push(fields) },
      members: { list: async () => [] },
      latestHeartbeat: () => undefined,
      countAttachments: () => new Map(),
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
