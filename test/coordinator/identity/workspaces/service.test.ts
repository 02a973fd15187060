// Workspaces: who may create them, zero data retention, and until when a closing workspace can be reopened.
import t from 'tap'
import type { Db } from '../../../../coordinator/db/open.ts'
import { subscribeToAccessChanges } from '../../../../coordinator/http/access-changes.ts'
import type { Actor } from '../../../../coordinator/http/actor.ts'
import { createWorkspaceService } from '../../../../coordinator/identity/workspaces/service.ts'
import { subscribeToDueTimes } from '../../../../coordinator/jobs/due-times.ts'
import { LIMITS } from '../../../../shared/limits.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { addKeyOf, addUser, createOwner, createTestClock } from '../../../support/workspace.ts'

const DAY_MS = 24 * 60 * 60 * 1000

async function start(db: Db, { isSignupOpen = false, purgeDays = 30 } = {}) {
  const clock = createTestClock()
  const owner = await createOwner(db, clock)
  await db.updateTable('users').set({ email: 'root@example.com' }).execute()
  const scheduled: number[] = []
  subscribeToDueTimes(db, (time) => scheduled.push(time), { onGap: () => undefined })
  const accessChanges: string[] = []
  subscribeToAccessChanges(db, ({ workspaceId }) => accessChanges.push(workspaceId), {
    onGap: () => undefined,
  })
  const workspaces = createWorkspaceService({
    ...{ db, clock, isSignupOpen, purgeDays },
  })
  /** Creates a workspace, and returns its owner. */
  async function create(name: string): Promise<Actor> {
    clock.advance(1)
    const { id } = await workspaces.create(owner, name)
    const user = await db
      .selectFrom('users')
      .select('id')
      .where('workspace_id', '=', id)
      .executeTakeFirstOrThrow()
    return addKeyOf(db, { workspaceId: id, userId: user.id })
  }
  return { clock, owner, workspaces, create, scheduled, accessChanges }
}

onEachDatabase(t, async (t, newDb) => {
  t.test('only owners of the first workspace create others, unless the sign-up is open', async (t) => {
    const db = await newDb(t)
    const { owner, workspaces, create } = await start(db)
    const other = await create('Two')
    const withoutUser = await addKeyOf(db, { ...other, userId: null })
    for (const actor of [other, await addUser(db, owner, { role: 'member' }), withoutUser])
      await t.rejects(workspaces.create(actor, 'Three'), { code: 'not_owner' })
    t.match(await workspaces.get(other), { name: 'Two', closable: true, closingAt: null, purgeAfter: null })
    t.match(await workspaces.get(owner), { name: 'Boxwood', closable: false })
  })

  t.test('a person owns a limited number of workspaces', async (t) => {
    const db = await newDb(t)
    const { owner, workspaces } = await start(db, { isSignupOpen: true })
    const member = await addUser(db, owner, { role: 'contractor' })
    for (let n = 0; n < LIMITS.ownedWorkspaces; n++) t.ok(await workspaces.create(member, `Lab ${n}`))
    await t.rejects(workspaces.create(member, 'Lab'), { code: 'not_allowed', message: /limit/ })
    await db.updateTable('users').set({ email: null }).where('id', '=', member.userId).execute()
    await t.rejects(workspaces.create(member, 'Lab'), {
      code: 'bad_request',
      message: /no email address.* `box profile --email ADDRESS`/,
    })
  })

  t.test('a closing workspace can be reopened until its purge may start', async (t) => {
    const db = await newDb(t)
    const { clock, workspaces, create, scheduled, accessChanges, owner } = await start(db)
    const actor = await create('Two')
    const listSchedules = () => db.selectFrom('schedules').select(['kind', 'target_id', 'due_at']).execute()
    await workspaces.close(actor, 'Two')
    const purgeAt = clock.now() + 30 * DAY_MS
    t.same(scheduled, [purgeAt])
    t.same(accessChanges, [actor.workspaceId])
    t.same(await listSchedules(), [
      { kind: 'purge_workspace', target_id: actor.workspaceId, due_at: purgeAt },
    ])
    clock.advance(30 * DAY_MS - 1)
    t.match(await workspaces.reopen(actor), { closingAt: null, purgeAfter: null })
    t.same(await listSchedules(), [])
    t.same(accessChanges, [actor.workspaceId, actor.workspaceId])

    await workspaces.close(actor, 'Two')
    clock.advance(30 * DAY_MS)
    await t.rejects(workspaces.reopen(actor), { code: 'workspace_closing', message: /cannot be reopened/ })
    t.equal((await listSchedules()).length, 1)
    await t.rejects(workspaces.close(owner, 'Boxwood'), { code: 'not_allowed' })
  })

  t.test('without days in between, the purge is due at once', async (t) => {
    const db = await newDb(t)
    const { clock, workspaces, create, scheduled } = await start(db, { purgeDays: 0 })
    const actor = await create('Two')
    await workspaces.close(actor, 'Two')
    t.same(scheduled, [clock.now()])
    await t.rejects(workspaces.reopen(actor), { code: 'workspace_closing' })
  })

  t.test('turning zero data retention on erases what is stored', async (t) => {
    const db = await newDb(t)
    const { clock, workspaces, create, scheduled } = await start(db)
    const actor = await create('Two')
    for (const [zeroDataRetention, times] of [
      [false, 0],
      [true, 1],
      [true, 1],
      [false, 1],
      [true, 2],
    ] as const) {
      t.match(await workspaces.update(actor, { zeroDataRetention }), { zeroDataRetention })
      t.equal(scheduled.length, times)
    }
    const schedules = await db.selectFrom('schedules').selectAll().where('kind', '=', 'erase').execute()
    t.match(schedules, [{ target_id: actor.workspaceId, due_at: clock.now() }])
  })
})
