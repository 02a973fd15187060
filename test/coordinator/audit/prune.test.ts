// The retention of the audit log: expired events are deleted, and the rest of the hash chain stays intact.
import t from 'tap'
import { createAuditLog } from '../../../coordinator/audit/audit-log.ts'
import { pruneAuditLog } from '../../../coordinator/audit/prune.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { startVerification, verifyPage } from '../../../shared/verify-audit-chain.ts'
import { onEachDatabase } from '../../support/db.ts'
import { createRetentionLoader } from '../../support/owners.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'
import { record } from './support.ts'

const DAY = 24 * 60 * 60 * 1000
const START = Date.UTC(2030, 0, 1)
const { signal } = new AbortController()

onEachDatabase(t, async (t, newDb) => {
  t.test('events expire after 90 days, whole days at a time, in each workspace', async (t) => {
    const { db, clock, owner, other, list, verify } = await setUp(await newDb(t))
    t.equal(
      await pruneAuditLog({ db, clock, loadRetentionDays: createRetentionLoader(db) }, signal),
      0,
      'nothing has expired',
    )
    for (let day = 0; day < 20; day++) {
      await record(db, { kind: 'box.wake', actor: owner, at: START + day * DAY + 3600_000, detail: { day } })
      if (day % 10 === 0) await record(db, { kind: 'box.wake', actor: other, at: START + day * DAY })
    }
    // Now is day 100: the events of the days 0 to 9 are older than 90 days.
    t.equal(await pruneAuditLog({ db, clock, loadRetentionDays: createRetentionLoader(db) }, signal, 4), 11)
    const events = await list(owner)
    t.same(events.map(({ kind, id, detail }) => `${kind} ${id} ${JSON.stringify(detail)}`).slice(0, 5), [
      'audit.prune 23 {"through":10,"deleted":2}',
      'audit.prune 22 {"through":8,"deleted":4}',
      'audit.prune 21 {"through":4,"deleted":4}',
      'box.wake 20 {"day":19}',
      'box.wake 19 {"day":18}',
    ])
    t.equal(events.at(-1)?.id, 11)
    t.match(await list(other), [{ kind: 'audit.prune', id: 3 }, { id: 2 }])
    t.match(await verify(owner), { problem: null, events: 13, start: { id: 10 }, head: { id: 23 } })
    t.match(await verify(other), { problem: null, events: 2, start: { id: 1 } })

    clock.advance(23 * 3600_000)
    t.equal(
      await pruneAuditLog({ db, clock, loadRetentionDays: createRetentionLoader(db) }, signal),
      0,
      'nothing more on the same day',
    )
    clock.advance(3600_000)
    t.equal(await pruneAuditLog({ db, clock, loadRetentionDays: createRetentionLoader(db) }, signal), 1 + 1)
    t.match(await verify(owner), { problem: null, start: { id: 11 } })
  })
})

t.test('the policy of the workspace decides', async (t) => {
  const { db, clock, owner, other, list, setRetention } = await setUp(await sqliteForTest(t))
  for (const actor of [owner, other])
    await record(db, { kind: 'box.wake', actor, at: clock.now() - 20 * DAY })
  await setRetention(10)
  t.equal(await pruneAuditLog({ db, clock, loadRetentionDays: createRetentionLoader(db) }, signal), 1)
  t.match(await list(owner), [{ kind: 'audit.prune' }])
  t.match(await list(other), [{ kind: 'box.wake' }])
})

t.test('the log of an idle workspace does not grow by its own pruning', async (t) => {
  const { db, clock, owner, list, verify } = await setUp(await sqliteForTest(t))
  await record(db, { kind: 'box.wake', actor: owner, at: clock.now() - 95 * DAY })
  t.equal(await pruneAuditLog({ db, clock, loadRetentionDays: createRetentionLoader(db) }, signal), 1)
  for (let i = 0; i < 3; i++) {
    clock.advance(100 * DAY)
    t.equal(await pruneAuditLog({ db, clock, loadRetentionDays: createRetentionLoader(db) }, signal), 0)
  }
  t.equal((await list(owner)).length, 1)
  await record(db, { kind: 'box.wake', actor: owner, at: clock.now() })
  clock.advance(100 * DAY)
  t.equal(
    await pruneAuditLog({ db, clock, loadRetentionDays: createRetentionLoader(db) }, signal),
    2,
    'with later events they expire too',
  )
  t.match(await verify(owner), { problem: null, start: { id: 3 }, events: 1 })
})

t.test('an aborted run deletes and records whole batches', async (t) => {
  const { db, clock, owner, list, verify } = await setUp(await sqliteForTest(t))
  for (let i = 0; i < 5; i++) await record(db, { kind: 'box.wake', actor: owner, at: START })
  const aborted = new AbortController()
  const pruning = pruneAuditLog(
    { db, clock, loadRetentionDays: createRetentionLoader(db) },
    aborted.signal,
    2,
  )
  await db.selectFrom('audit_log').select('no').execute()
  aborted.abort()
  const deleted = await pruning
  t.ok(deleted <= 5)
  t.match(await verify(owner), { problem: null, start: { id: deleted } })
  t.equal(
    await pruneAuditLog({ db, clock, loadRetentionDays: createRetentionLoader(db) }, signal),
    5 - deleted,
  )
  t.ok((await list(owner)).every(({ kind }) => kind === 'audit.prune'))
})

async function setUp(db: Db) {
  const clock = createTestClock(START + 100 * DAY)
  const owner = await createOwner(db, clock)
  const audit = createAuditLog({ db, clock, boxes: createTestBoxService(db) })
  const other = await createOtherWorkspace(db, owner)
  const list = async (actor: Actor) =>
    (await audit.list(actor, {})).events.map(({ id, kind, detail }) => ({ id, kind, detail }))
  const setRetention = (auditRetentionDays: number) =>
    db
      .insertInto('policies')
      .values({
        workspace_id: owner.workspaceId,
        policy: JSON.stringify({ auditRetentionDays }),
        updated_by: null,
        updated_at: 0,
      })
      .execute()
  async function verify(actor: Actor) {
    let state = startVerification()
    for (let after = 0; !state.isComplete; ) {
      const page = await audit.readChain(actor, { after, limit: 2 })
      state = verifyPage(state, page)
      after = page.next ?? 0
    }
    return state
  }
  return { db, clock, owner, other, list, setRetention, verify }
}

async function createOtherWorkspace(db: Db, owner: Actor): Promise<Actor> {
  const workspace = await db.selectFrom('workspaces').selectAll().executeTakeFirstOrThrow()
  const workspaceId = 'ws_000000000000000000000001'
  await db
    .insertInto('workspaces')
    .values({ ...workspace, id: workspaceId })
    .execute()
  return { ...owner, workspaceId }
}
