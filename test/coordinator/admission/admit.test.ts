// The queries of an admission: none for policies that are off, an index for the count of boxes, and a lock where it decides.

import t from 'tap'
import { createAdmit } from '../../../coordinator/admission/admit.ts'
import { countLiveBoxes } from '../../../coordinator/boxes/lookups.ts'
import { createResizes } from '../../../coordinator/boxes/resize.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { serveAllRegions } from '../../../coordinator/providers/regions.ts'
import type { Policy } from '../../../shared/api/policies.ts'
import { systemClock } from '../../../shared/clock.ts'
import { createTestAdmit } from '../../support/admit.ts'
import { createBillingFacts } from '../../support/billing-facts.ts'
import { onEachDatabase } from '../../support/db.ts'
import { FakeInfrastructure } from '../../support/fake-infrastructure.ts'
import { capturePlans, captureQueries } from '../../support/query-plan.ts'
import { TEST_HOST } from '../../support/replica.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { addKeyOf, addUser, createOwner, createTestBoxService } from '../../support/workspace.ts'

const setPolicy = ({ workspaceId }: Actor, db: Db, policy: Partial<Policy>) =>
  db
    .insertInto('policies')
    .values({
      workspace_id: workspaceId,
      policy: JSON.stringify(policy),
      updated_by: null,
      updated_at: 0,
    })
    .execute()

/** Makes the box settled in the state, without a lifecycle. */
async function settle(db: Db, id: string, state: 'running' | 'suspended'): Promise<void> {
  await db.deleteFrom('jobs').execute()
  await db
    .updateTable('boxes')
    .set({ desired_state: state, observed_state: state })
    .where('id', '=', id)
    .execute()
}

/** The queries of create, wake and resize, of a member of a workspace. */
async function captureRequests(database: Db, policy: Partial<Policy> | null) {
  const { db, readQueries } = captureQueries(database)
  const owner = await createOwner(db)
  const member = await addUser(db, owner, { role: 'member' })
  if (policy !== null) await setPolicy(owner, db, policy)
  const boxes = createTestBoxService(db, { random: () => 0 })
  const { resize } = createResizes({
    ...{ db, clock: systemClock, host: TEST_HOST, boxes, admit: createTestAdmit() },
    providers: serveAllRegions(new FakeInfrastructure().provider),
    schedule: () => undefined,
  })
  readQueries()
  const { id } = await boxes.create(member, { name: 'fig' })
  const create = readQueries()
  await settle(db, id, 'suspended')
  readQueries()
  await boxes.wake(member, id)
  const wake = readQueries()
  await settle(db, id, 'running')
  readQueries()
  await resize(member, id, 'nano', null)
  return { create, wake, resize: readQueries() }
}

const AUDIT = ['select audit_heads', 'insert audit_log', 'update audit_heads']
/** The queries of these requests before policies limited members. */
const WITHOUT_LIMITS = {
  create: [
    ...['select policies', 'select workspaces', 'select users', 'select environments', 'select environments'],
    ...['insert boxes', 'insert box_events', 'select box_events', 'delete box_events'],
    ...['insert jobs', 'select schedules'],
    // The first event of the workspace.
    ...['select audit_heads', 'insert audit_heads', ...AUDIT],
  ],
  wake: [
    ...['select boxes', 'select policies', 'select workspaces', 'update boxes', 'select jobs', 'insert jobs'],
    ...AUDIT,
  ],
  resize: ['select jobs', 'select policies', 'select workspaces', 'update boxes', 'insert jobs', ...AUDIT],
}

onEachDatabase(t, async (t, newDb) => {
  t.test('without a limit that needs them, no facts are read', async (t) => {
    t.same(await captureRequests(await newDb(t), null), WITHOUT_LIMITS)
    const policy = { memberMaxTier: 'pro', autoPauseFloorMin: 60, memberSpendCapUsd: 1 } as const
    t.match(
      await captureRequests(await newDb(t), policy),
      { wake: WITHOUT_LIMITS.wake, resize: WITHOUT_LIMITS.resize },
      'policies that need no further facts',
    )
  })

  t.test('the boxes are counted by an index, only for a request that creates one', async (t) => {
    const database = await newDb(t)
    const { create, wake, resize } = await captureRequests(database, { memberBoxLimit: 3 })
    const [policies = '', workspaces = '', users = '', ...others] = WITHOUT_LIMITS.create
    t.same(create, [policies, workspaces, users, 'select boxes', ...others])
    t.same([wake, resize], [WITHOUT_LIMITS.wake, WITHOUT_LIMITS.resize])

    const { db, readPlans } = capturePlans(database)
    const { workspace_id, id } = await db
      .selectFrom('users')
      .select(['workspace_id', 'id'])
      .where('role', '=', 'member')
      .executeTakeFirstOrThrow()
    await readPlans()
    t.equal(await transaction(db, (trx) => countLiveBoxes(trx, workspace_id, id)), 1)
    const plans = await readPlans()
    t.match(plans.join('\n'), /boxes_(live|by_owner)/)
    t.notMatch(plans.join('\n'), /^SCAN|Seq Scan/m)
  })

  t.test('concurrent creates do not pass the limit together', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const members = [
      await addUser(db, owner, { role: 'member' }),
      await addUser(db, owner, { role: 'contractor' }),
    ]
    await setPolicy(owner, db, { memberBoxLimit: 2 })
    const boxes = createTestBoxService(db)
    const creations = members.flatMap((member) => Array.from({ length: 5 }, () => boxes.create(member, {})))
    const results = await Promise.allSettled(creations)
    t.equal(results.filter(({ status }) => status === 'fulfilled').length, 4)
    for (const result of results)
      if (result.status === 'rejected')
        t.match(result.reason, { code: 'policy_denied', fields: { rule: 'memberBoxLimit' } })
    const [member] = members
    if (!member) return
    const own = (await boxes.list(member)).find(({ ownerUserId }) => ownerUserId === member.userId)
    await boxes.remove(member, own?.id ?? '')
    t.ok(await boxes.create(member, {}), 'a box that is being deleted does not count')
    for (let i = 0; i < 3; i += 1) await boxes.create(owner, {})
    t.ok(await boxes.create(await addKeyOf(db, { workspaceId: owner.workspaceId, userId: null }), {}))
  })
})

t.test('the facts of billing are read after the workspace is locked, and decide', async (t) => {
  const { db, readQueries } = captureQueries(await sqliteForTest(t))
  const owner = await createOwner(db)
  const requests: (string | null)[] = []
  const admit = createAdmit({
    clock: systemClock,
    countLiveBoxes,
    async loadBilling(_trx, { userId }) {
      requests.push(userId)
      return createBillingFacts({ hold: 'mining' })
    },
  })
  const boxes = createTestBoxService(db, { admit })
  readQueries()
  await t.rejects(boxes.create(owner, {}), { code: 'workspace_held' })
  t.same(requests, [owner.userId])
  t.equal(
    readQueries().some((query) => query.startsWith('insert')),
    false,
  )
})
