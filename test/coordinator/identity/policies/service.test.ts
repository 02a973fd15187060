// Stored policies on each database: concurrent changes, and policies that an earlier version has stored.
import t from 'tap'
import { createPolicyService, loadPolicy } from '../../../../coordinator/identity/policies/service.ts'
import { DEFAULT_POLICY } from '../../../../shared/api/policies.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { createOwner, createTestClock } from '../../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  const db = await newDb(t)
  const clock = createTestClock()
  const owner = await createOwner(db, clock)
  const policies = createPolicyService({ db, clock })

  await t.test('concurrent changes are all kept, and recorded one after the other', async (t) => {
    const changes = [{ memberSpendCapUsd: 12.5 }, { autoPauseFloorMin: 60 }, { anyoneLinksOwnerOnly: true }]
    await Promise.all(changes.map((change) => policies.update(owner, change)))
    const policy = Object.assign({}, DEFAULT_POLICY, ...changes)
    t.same(await policies.get(owner), {
      policy,
      updatedBy: owner.userId,
      updatedAt: '2030-01-01T00:00:00.000Z',
      quietHoursProblem: null,
    })
    t.same(await loadPolicy(db, owner.workspaceId), policy)
    const events = await db.selectFrom('audit_log').select(['no', 'kind']).orderBy('no').execute()
    t.same(
      events.map(({ no, kind }) => ({ no, kind })),
      [1, 2, 3].map((no) => ({ no, kind: 'policy.update' })),
    )
  })

  await t.test('a time zone that is not known any more', async (t) => {
    const quietHours = { start: '22:00', end: '07:00', days: ['mon'], allDayDays: [], timezone: 'Europe/Old' }
    const stored = JSON.stringify({ quietHours })
    await db.updateTable('policies').set({ policy: stored }).execute()
    t.match(await policies.get(owner), {
      policy: { quietHours },
      quietHoursProblem: /does not know the time zone Europe\/Old, so no quiet hours start/,
    })
    const update = { quietHours: { ...quietHours, days: ['mon' as const], timezone: 'Europe/Berlin' } }
    t.match(await policies.update(owner, update), { quietHoursProblem: null })
  })

  await t.test('a policy that is not stored has its default', async (t) => {
    await db.updateTable('policies').set({ policy: '{"memberBoxLimit":2}' }).execute()
    t.same(await loadPolicy(db, owner.workspaceId), { ...DEFAULT_POLICY, memberBoxLimit: 2 })
    t.same(await loadPolicy(db, 'ws_other'), DEFAULT_POLICY)
  })
})
