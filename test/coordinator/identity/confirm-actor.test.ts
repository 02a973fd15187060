// Changes that give rights need the rights of the actor at their commit, on each database.
import t from 'tap'
import type { Db } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { confirmActor } from '../../../coordinator/identity/confirm-actor.ts'
import { createKeyService } from '../../../coordinator/identity/keys/key-service.ts'
import { createMemberService } from '../../../coordinator/identity/members/service.ts'
import { newApiKey } from '../../../shared/api-key.ts'
import { systemClock } from '../../../shared/clock.ts'
import { newId } from '../../../shared/ids.ts'
import { onEachDatabase } from '../../support/db.ts'
import { addUser, createOwner, createTestBoxService } from '../../support/workspace.ts'

const DAY_MS = 24 * 60 * 60_000
const REVOKED = { code: 'unauthorized' }
const CHANGED = { code: 'not_allowed', message: /have changed/ }

async function setUp(db: Db) {
  const owner = await createOwner(db)
  const keys = createKeyService({
    ...{ db, clock: systemClock, newApiKey },
    boxes: createTestBoxService(db),
  })
  const members = createMemberService({
    ...{ db, clock: systemClock, sendMail: null, publicUrl: 'https://boxes.example.com' },
    restrictBoxesOf: async () => undefined,
    hasUnrestrictedBoxes: async () => false,
  })
  const confirm = (actor: Actor, now = systemClock.now()) =>
    transaction(db, (trx) => confirmActor(trx, actor, now))
  return { owner, keys, members, confirm }
}

async function addSession(db: Db, { workspaceId, userId }: Actor): Promise<Actor> {
  const now = systemClock.now()
  const id = newId('session')
  const expiresAt = now + DAY_MS
  await db
    .insertInto('sessions')
    .values({
      ...{ id, hash: id, workspace_id: workspaceId, user_id: userId ?? '' },
      ...{ created_at: now, last_used_at: now, expires_at: expiresAt },
    })
    .execute()
  const credential = { type: 'session', id, expiresAt } as const
  return { credential, workspaceId, userId, role: 'owner', boxIds: null, access: null }
}

onEachDatabase(t, async (t, newDb) => {
  t.test('a key', async (t) => {
    const db = await newDb(t)
    const { owner, keys, confirm } = await setUp(db)
    const actor = await addUser(db, owner, { role: 'member' })
    t.equal((await confirm(actor)).id, owner.workspaceId)
    await keys.update(owner, actor.credential.id, { access: 'read' })
    await t.rejects(confirm(actor), CHANGED)
    await keys.update(owner, actor.credential.id, { access: null })
    t.ok(await confirm(actor))
    await keys.update(owner, actor.credential.id, {
      expiresAt: new Date(systemClock.now() + DAY_MS).toISOString(),
    })
    await t.rejects(confirm(actor, systemClock.now() + 2 * DAY_MS), REVOKED)
    await keys.revoke(owner, actor.credential.id)
    await t.rejects(confirm(actor), REVOKED)
    await t.rejects(keys.create(actor, { name: 'ci' }), REVOKED)
  })

  t.test('a user', async (t) => {
    const db = await newDb(t)
    const { owner, members, confirm } = await setUp(db)
    const actor = await addUser(db, owner, { role: 'owner' })
    const id = actor.userId ?? ''
    await members.update(owner, id, { role: 'member' })
    await t.rejects(confirm(actor), CHANGED)
    await t.rejects(members.invite(actor, { email: 'ada@example.com', role: 'owner' }), CHANGED)
    await members.remove(owner, id)
    await t.rejects(confirm(actor), REVOKED)
  })

  t.test('a session', async (t) => {
    const db = await newDb(t)
    const { owner, confirm } = await setUp(db)
    const actor = await addSession(db, owner)
    t.ok(await confirm(actor))
    await t.rejects(confirm(actor, systemClock.now() + 2 * DAY_MS), REVOKED)
    await db.deleteFrom('sessions').where('id', '=', actor.credential.id).execute()
    await t.rejects(confirm(actor), REVOKED)
  })

  t.test('a key is not created by a user who is removed at the same time', async (t) => {
    const db = await newDb(t)
    const { owner, keys, members } = await setUp(db)
    for (let round = 0; round < 10; round += 1) {
      const actor = await addUser(db, owner, { role: 'owner' })
      const [created] = await Promise.allSettled([
        keys.create(actor, { name: 'stays', user: null }),
        members.remove(owner, actor.userId ?? ''),
      ])
      // The key has no user, so the removal does not revoke it: it exists if the creation came first.
      const stays = (await keys.list(owner, {})).keys.filter(({ name }) => name === 'stays')
      t.equal(stays.length, created.status === 'fulfilled' ? 1 : 0)
      if (created.status === 'rejected') t.match(created.reason, REVOKED)
      for (const { id } of stays) await keys.revoke(owner, id)
    }
  })
})
