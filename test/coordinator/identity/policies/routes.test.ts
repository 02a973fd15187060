// Reading and changing the policies of a workspace.
import t from 'tap'
import { loadPolicy } from '../../../../coordinator/identity/policies/service.ts'
import { DEFAULT_POLICY } from '../../../../shared/api/policies.ts'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { createLimitedKey, createUserKey } from '../../../support/limited-key.ts'
import { createTestSession } from '../../../support/session.ts'

const PATH = '/workspace/policies'
const quietHours = {
  start: '22:30',
  end: '06:00',
  days: ['fri', 'mon'],
  allDayDays: ['sun', 'sat'],
  timezone: 'Europe/Berlin',
}

t.test('policies', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, instance } = coordinator
  const { db } = instance.context
  const workspaceId = instance.owner?.workspaceId ?? ''
  const owner = await createTestSession(coordinator)
  const patch = (body: unknown) => api('PATCH', PATH, body, owner)
  const listEvents = async () =>
    (
      await db
        .selectFrom('audit_log')
        .select(['kind', 'actor_user_id', 'actor_token_id', 'box_id', 'detail'])
        .where('kind', '=', 'policy.update')
        .orderBy('no')
        .execute()
    ).map(({ detail, ...event }) => ({ ...event, detail: JSON.parse(detail ?? '') }))

  await t.test('are off until an owner sets them', async (t) => {
    const { status, json } = await api('GET', PATH)
    t.equal(status, 200)
    t.same(json, {
      ...{ policy: DEFAULT_POLICY, updatedBy: null, updatedAt: null },
      quietHoursProblem: null,
    })
    t.match(DEFAULT_POLICY, { auditRetentionDays: 90, anyoneLinksOwnerOnly: false, shareLinks: true })
    t.same(await loadPolicy(db, workspaceId), DEFAULT_POLICY)
  })

  await t.test('a change affects the policies that it names, and is recorded', async (t) => {
    const first = await patch({ memberBoxLimit: 3, quietHours, auditRetentionDays: 30, shareLinks: false })
    t.equal(first.status, 200)
    t.match(first.json, { updatedBy: owner.userId, updatedAt: /Z$/ })
    const sortedHours = { ...quietHours, days: ['mon', 'fri'], allDayDays: ['sat', 'sun'] }
    const changes = { memberBoxLimit: 3, quietHours: sortedHours, auditRetentionDays: 30, shareLinks: false }
    t.same(first.json.policy, { ...DEFAULT_POLICY, ...changes })

    const second = await patch({ memberBoxLimit: null, auditRetentionDays: null, memberMaxTier: 'pro' })
    const policy = { ...DEFAULT_POLICY, quietHours: sortedHours, shareLinks: false, memberMaxTier: 'pro' }
    t.same(second.json.policy, policy, 'null sets the default')
    t.same((await api('GET', PATH)).json, second.json)
    t.same(await loadPolicy(db, workspaceId), policy)

    const actor = { kind: 'policy.update', actor_user_id: owner.userId, actor_token_id: owner.sessionId }
    const expected = [
      {
        fields: 'memberBoxLimit,quietHours,auditRetentionDays,shareLinks',
        ...{ memberBoxLimit: 3, auditRetentionDays: 30, shareLinks: false },
      },
      {
        fields: 'memberBoxLimit,memberMaxTier,auditRetentionDays',
        ...{ memberBoxLimit: null, memberMaxTier: 'pro', auditRetentionDays: 90 },
      },
    ].map((detail) => ({ ...actor, box_id: null, detail }))
    t.same(await listEvents(), expected)

    t.same((await patch({ memberMaxTier: 'pro', memberBoxLimit: null })).json, second.json)
    t.same(await listEvents(), expected, 'a request that changes nothing is not recorded')
  })

  await t.test('an invalid value is refused with its field, and changes nothing', async (t) => {
    const before = (await api('GET', PATH)).json
    const cases: [body: Record<string, unknown>, message: RegExp][] = [
      [{ memberSpendCapUsd: 0 }, /^memberSpendCapUsd must be an amount between 0.01 and 1000000/],
      [{ memberSpendCapUsd: 1.005 }, /at most two decimals/],
      [{ memberSpendCapUsd: '5' }, /^memberSpendCapUsd must be an amount/],
      [{ memberSpendCapUsd: 1_000_001 }, /between 0.01 and 1000000/],
      [{ memberBoxLimit: 0 }, /integer between 1 and 10000/],
      [{ memberBoxLimit: 1.5 }, /integer/],
      [{ memberMaxTier: 'huge' }, /must be one of nano, micro/],
      [{ autoPauseFloorMin: 29 }, /between 30 and 10080/],
      [{ auditRetentionDays: 3651 }, /between 1 and 3650/],
      [{ shareLinks: 'no' }, /must be true or false/],
      [{ anyoneLinksOwnerOnly: 1 }, /must be true or false/],
      [{ quietHours: 'nights' }, /must be a JSON object/],
      [{ quietHours: { ...quietHours, start: '24:00' } }, /^quietHours.start must be a time/],
      [{ quietHours: { ...quietHours, end: '6:00' } }, /^quietHours.end must be a time/],
      [{ quietHours: { ...quietHours, end: quietHours.start } }, /^quietHours.end must differ/],
      [{ quietHours: { ...quietHours, days: ['monday'] } }, /^quietHours.days\[0\] must be one of mon, tue/],
      [{ quietHours: { ...quietHours, days: Array(8).fill('mon') } }, /^quietHours.days must have at most 7/],
      [{ quietHours: { ...quietHours, days: [], allDayDays: [] } }, /^quietHours.days must name a day/],
      [{ quietHours: { ...quietHours, timezone: 'Mars/Olympus' } }, /^quietHours.timezone must be an IANA/],
      [{ quietHours: { ...quietHours, timezone: '+01:00' } }, /must be an IANA/],
      [{ quietHours: { ...quietHours, timezone: undefined } }, /^quietHours.timezone is required/],
      [{ quietHours: { ...quietHours, pause: true } }, /^unknown field quietHours.pause/],
      [{ memberBoxLimits: 3 }, /^unknown field memberBoxLimits/],
    ]
    for (const [body, message] of cases) {
      const [field] = Object.keys(body)
      const { status, json } = await patch({ shareLinks: true, ...body })
      t.equal(status, 400, JSON.stringify(body))
      t.match(json, { error: 'invalid_policy', field, message }, JSON.stringify(body))
    }
    for (const body of [{}, [], 'null', null]) t.match((await patch(body)).json, { error: 'bad_request' })
    t.same((await api('GET', PATH)).json, before)
  })

  await t.test('owners change them by session, owners and members read them', async (t) => {
    const read = async (options: Parameters<typeof api>[3]) =>
      (await api('GET', PATH, undefined, options)).status
    const change = async (options: Parameters<typeof api>[3]) =>
      (await api('PATCH', PATH, { memberBoxLimit: 5 }, options)).json.error
    const member = await createTestSession(coordinator, 'member')
    const contractor = await createTestSession(coordinator, 'contractor')
    t.equal(await read(member), 200)
    t.equal(await read({ key: await createUserKey(coordinator, 'member') }), 200)
    t.equal(await read(contractor), 403)
    t.equal(await read({ key: await createLimitedKey(coordinator, { access: { boxes: 'write' } }) }), 403)
    t.equal(await read({ key: await createLimitedKey(coordinator, { access: { workspace: 'read' } }) }), 200)
    t.equal(await change(member), 'not_owner')
    t.equal(await change(contractor), 'not_allowed')
    t.equal(await change({}), 'unauthorized', 'an API key')
    t.equal(await change({ key: null }), 'unauthorized')
  })

  await t.test('of a closing workspace can be read, not changed', async (t) => {
    await db.updateTable('workspaces').set({ closing_at: 1 }).where('id', '=', workspaceId).execute()
    t.equal((await api('GET', PATH)).status, 200)
    const { status, json } = await patch({ memberBoxLimit: 7 })
    t.equal(status, 409)
    t.match(json, { error: 'workspace_closing' })
  })
})
