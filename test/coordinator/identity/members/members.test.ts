// Members of a workspace: last owners, credentials of removed members, and concurrent changes.
import t from 'tap'
import { hasUnrestrictedBoxes } from '../../../../coordinator/boxes/lookups.ts'
import { createRestrictBoxesOf } from '../../../../coordinator/boxes/restrict-boxes.ts'
import { dialectTraits } from '../../../../coordinator/db/dialects.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import { type AccessChange, subscribeToAccessChanges } from '../../../../coordinator/http/access-changes.ts'
import type { Actor } from '../../../../coordinator/http/actor.ts'
import { createMemberService } from '../../../../coordinator/identity/members/service.ts'
import { newId } from '../../../../shared/ids.ts'
import { LIMITS } from '../../../../shared/limits.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { capturePlans } from '../../../support/query-plan.ts'
import { addUser, createOwner, createTestBoxService, createTestClock } from '../../../support/workspace.ts'

/** @param onRestricted runs in the transaction of a demotion, before the lock on the workspace */
async function start(db: Db, onRestricted = async (): Promise<unknown> => undefined) {
  const clock = createTestClock()
  const owner = await createOwner(db, clock)
  const changes: AccessChange[] = []
  subscribeToAccessChanges(db, (change) => changes.push(change), { onGap: () => undefined })
  const mails: string[] = []
  const restricted: string[] = []
  const restrictBoxesOf = createRestrictBoxesOf({
    restrictBox: async (_trx, boxId) => void restricted.push(boxId),
  })
  const members = createMemberService({
    db,
    clock,
    sendMail: async (mail) => void mails.push(`${mail.to}: ${mail.subject}\n${mail.text}`),
    publicUrl: 'https://boxes.example.com',
    async restrictBoxesOf(...args) {
      await restrictBoxesOf(...args)
      await onRestricted()
    },
    hasUnrestrictedBoxes,
  })
  /** A member that has signed in. */
  async function addMember(role: Actor['role']): Promise<Actor & { userId: string }> {
    const actor = await addUser(db, owner, { role })
    const { userId } = actor
    if (userId === null) throw new Error('the actor has no user')
    await db.updateTable('users').set({ joined_at: clock.now() }).where('id', '=', userId).execute()
    return { ...actor, userId }
  }
  return {
    clock,
    owner: { ...owner, userId: owner.userId ?? '' },
    members,
    changes,
    mails,
    restricted,
    addMember,
  }
}

const countRows = async (db: Db, table: 'sessions' | 'tickets', userId: string) =>
  (await db.selectFrom(table).select('id').where('user_id', '=', userId).execute()).length

onEachDatabase(t, async (t, newDb) => {
  t.test('a removed member loses every credential in the same step', async (t) => {
    const db = await newDb(t)
    const { owner, members, changes, addMember, clock } = await start(db)
    const member = await addMember('member')
    const { userId, workspaceId } = member
    const sessionId = newId('session')
    const now = clock.now()
    const times = { created_at: now, expires_at: now + 1000 }
    const ofUser = { workspace_id: workspaceId, user_id: userId }
    await db
      .insertInto('sessions')
      .values({ id: sessionId, hash: 'a', ...ofUser, ...times, last_used_at: now })
      .execute()
    await db
      .insertInto('tickets')
      .values({ id: newId('ticket'), hash: 'b', ...ofUser, ...times, session_id: sessionId, box_id: 'box' })
      .execute()
    await db
      .updateTable('users')
      .set({ last_active_at: now + 5 })
      .where('id', '=', userId)
      .execute()
    await db
      .updateTable('api_keys')
      .set({ last_used_at: now + 7 })
      .where('user_id', '=', userId)
      .execute()
    const listed = await members.list(owner)
    t.match(
      listed.find(({ id }) => id === userId),
      {
        status: 'active',
        lastActiveAt: new Date(now + 7).toISOString(),
      },
    )

    const boxes = createTestBoxService(db)
    const box = await boxes.create(member, { name: 'fig' })
    await members.remove(owner, userId)
    t.equal(await countRows(db, 'sessions', userId), 0)
    t.equal(await countRows(db, 'tickets', userId), 0)
    const key = await db.selectFrom('api_keys').select('revoked_at').where('user_id', '=', userId).execute()
    t.same(key, [{ revoked_at: now }])
    t.same(changes, [{ workspaceId, userId }])
    t.notOk((await members.list(owner)).some(({ id }) => id === userId))
    t.equal((await boxes.get(owner, box.id)).box.id, box.id, 'the boxes stay')

    await members.remove(owner, userId)
    t.equal(changes.length, 1, 'removing again has no effect')
  })

  t.test('of owners that remove or demote each other at the same time, one stays', async (t) => {
    const db = await newDb(t)
    const { owner, members, addMember } = await start(db)
    for (const change of ['remove', 'demote'] as const) {
      const other = await addMember('owner')
      const run = (actor: Actor, id: string) =>
        change === 'remove' ? members.remove(actor, id) : members.update(actor, id, { role: 'member' })
      const owners = (await members.list(owner)).filter(({ role }) => role === 'owner').map(({ id }) => id)
      t.ok(owners.includes(other.userId))
      const results = await Promise.allSettled(owners.flatMap((id) => [run(other, id), run(owner, id)]))
      const refusals = results.filter((result) => result.status === 'rejected')
      t.ok(refusals.length > 0)
      for (const { reason } of refusals) t.match(reason, { code: /^(last_owner|unauthorized|not_allowed)$/ })
      const left = (await members.list(owner)).filter(({ role }) => role === 'owner')
      t.equal(left.length, 1, change)
    }
  })

  t.test('an id that cannot be stored is not found', async (t) => {
    const { owner, members } = await start(await newDb(t))
    await t.rejects(members.remove(owner, '\0'), { code: 'not_found' })
    await t.rejects(members.update(owner, '\0', { role: 'contractor' }), { code: 'not_found' })
  })

  t.test('an invited owner does not count as an owner', async (t) => {
    const db = await newDb(t)
    const { owner, members } = await start(db)
    const { member } = await members.invite(owner, { email: 'ada@example.com', role: 'owner' })
    t.equal(member.status, 'invited')
    await t.rejects(members.remove(owner, owner.userId), { code: 'last_owner' })
    await t.rejects(members.update(owner, owner.userId, { role: 'contractor' }), { code: 'last_owner' })
    t.equal((await members.update(owner, member.id, { role: 'member' })).role, 'member')
    await members.remove(owner, member.id)
  })

  t.test('the boxes of a member who becomes a contractor become restricted', async (t) => {
    const db = await newDb(t)
    const { owner, members, addMember, changes, restricted } = await start(db)
    const member = await addMember('member')
    const boxes = createTestBoxService(db)
    const box = await boxes.create(member, { name: 'fig' })
    const other = await boxes.create(owner, { name: 'plum' })
    await members.update(owner, member.userId, { role: 'contractor' })
    t.equal((await boxes.get(owner, box.id)).box.restricted, true)
    t.equal((await boxes.get(owner, other.id)).box.restricted, false)
    t.same(changes, [{ workspaceId: owner.workspaceId, userId: member.userId }])
    await members.update(owner, member.userId, { role: 'contractor', name: 'Ada' })
    t.equal(changes.length, 1, 'a new name changes no access')
    t.same(restricted, [box.id], 'each module removes what the box may not have any more, once')
    const events = await db.selectFrom('audit_log').selectAll().where('kind', '=', 'box.restrict').execute()
    t.match(events, [{ box_id: box.id, actor_user_id: owner.userId }])
    t.same(JSON.parse(events[0]?.detail ?? ''), { name: 'fig', reason: 'contractor' })
  })

  t.test('a box that is created during the demotion is restricted or refused', async (t) => {
    const db = await newDb(t)
    const boxes = createTestBoxService(db)
    const names = ['fig', 'plum']
    let member: Actor | undefined
    const { owner, members, addMember, restricted } = await start(db, async () => {
      // SQLite runs one transaction at a time.
      const name = dialectTraits(db).locksRows ? names.pop() : undefined
      if (member !== undefined && name !== undefined) await boxes.create(member, { name })
    })
    const added = await addMember('member')
    const { userId } = added
    member = added
    const source = await boxes.create(added, { name: 'kiwi' })
    await members.update(owner, userId, { role: 'contractor' })
    const own = (await boxes.list(owner)).filter(({ ownerUserId }) => ownerUserId === userId)
    t.equal(own.length, dialectTraits(db).locksRows ? 3 : 1)
    for (const box of own) t.equal(box.restricted, true, box.hostname)
    t.ok(restricted.includes(source.id))

    const changed = { code: 'not_allowed', message: /rights of this credential have changed/ }
    await t.rejects(boxes.create(added, { name: 'late' }), changed)
    await members.remove(owner, userId)
    await t.rejects(boxes.create({ ...added, role: 'contractor' }, { name: 'late' }), changed)
  })

  t.test('invitations: one per address, again after a removal, and limited per day', async (t) => {
    const db = await newDb(t)
    const { owner, members, mails, clock } = await start(db)
    const invite = (email: string) => members.invite(owner, { email, role: 'member' })
    const [first, second] = await Promise.allSettled([invite('ada@example.com'), invite('ada@example.com')])
    t.same([first?.status, second?.status].sort(), ['fulfilled', 'rejected'])
    t.equal(mails.length, 1)
    t.match(mails[0], /^ada@example\.com: .*Boxwood.*https:\/\/boxes\.example\.com\/sign-in/s)
    const [member] = (await members.list(owner)).filter(({ email }) => email === 'ada@example.com')
    t.match(member, { name: 'ada', status: 'invited', joinedAt: null })
    await members.remove(owner, member?.id ?? '')
    t.not((await invite('ada@example.com')).member.id, member?.id)

    const rows = Array.from({ length: LIMITS.invitations - 2 }, (_, n) => ({
      ...{ id: newId('user'), workspace_id: owner.workspaceId, email: `a${n}@example.com`, name: 'a' },
      ...{ role: 'member' as const, created_at: clock.now() },
    }))
    await db.insertInto('users').values(rows).execute()
    clock.advance(1)
    await t.rejects(invite('b@example.com'), { code: 'rate_limited', headers: { 'retry-after': '86400' } })
    clock.advance(24 * 60 * 60 * 1000)
    t.ok(await invite('b@example.com'))
  })

  t.test('listing members uses indexes', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    const { owner, members } = await start(db)
    await readPlans()
    await members.list(owner)
    for (const plan of await readPlans()) t.notMatch(plan, /^(SCAN|Seq Scan)/)
  })
})
