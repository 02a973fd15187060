// The sessions of viewers on each database: a code works once, and a session ends with the rights of its credential.
import t from 'tap'
import type { Db } from '../../../../coordinator/db/open.ts'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import type { Actor } from '../../../../coordinator/http/actor.ts'
import { createKeyActorFinder } from '../../../../coordinator/identity/keys/keys.ts'
import { createSessionActorFinder } from '../../../../coordinator/identity/sessions/find-session.ts'
import type { ServedShare } from '../../../../coordinator/port-shares/types.ts'
import { createShareViewers, VIEWERS } from '../../../../coordinator/port-shares/viewers/service.ts'
import { deleteViewersOfBox } from '../../../../coordinator/port-shares/viewers/store.ts'
import { newId } from '../../../../shared/ids.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { capturePlans } from '../../../support/query-plan.ts'
import {
  addKeyOf,
  addUser,
  createOwner,
  createTestBoxService,
  createTestClock,
} from '../../../support/workspace.ts'
import { readAllRows } from '../../../support/workspace-rows.ts'

const DAY_MS = 24 * 60 * 60_000
const STATE = 'a'.repeat(64)

async function addSession(db: Db, { workspaceId, userId, role }: Actor, expiresAt: number): Promise<Actor> {
  const id = newId('session')
  if (userId === null) throw new Error('the actor is no user')
  await db
    .insertInto('sessions')
    .values({
      ...{ id, hash: newId('session'), workspace_id: workspaceId, user_id: userId },
      ...{ created_at: 0, last_used_at: 0, expires_at: expiresAt },
    })
    .execute()
  return {
    ...{ workspaceId, userId, role, boxIds: null, access: null },
    credential: { type: 'session', id, expiresAt },
  }
}

onEachDatabase(t, async (t, newDb) => {
  const db = await newDb(t)
  const clock = createTestClock(Date.now())
  const owner = await createOwner(db, clock)
  const boxes = createTestBoxService(db, { clock })
  const { id: boxId } = await boxes.create(owner, { name: 'fig' })
  const create = (database: Db) => {
    const findKey = createKeyActorFinder({ db: database, clock })
    const findSession = createSessionActorFinder({ db: database, clock })
    return createShareViewers({
      ...{ db: database, clock },
      findActor: ({ type, id }) => (type === 'key' ? findKey(id) : findSession(id)),
    })
  }
  const viewers = create(db)
  const createShare = (id = newId('shareViewer')): ServedShare => ({
    ...{ id, workspaceId: owner.workspaceId, boxId, port: 3000, slug: 'fig-3000-x7k2m9q4ab' },
    ...{ access: 'members', secretHash: null, expiresAt: null, rewritesHost: false },
  })
  const share = createShare()
  const { signal } = new AbortController()
  const start = async (actor: Actor, at = share): Promise<string> => {
    const { code } = await viewers.createCode(actor, at, STATE)
    const session = await viewers.exchange(at, code, STATE)
    if (session === undefined) throw new Error('the code is not valid')
    return session.token
  }
  const countRows = async () => (await db.selectFrom('share_viewers').select('id').execute()).length

  await t.test('a code starts one session, also when many browsers send it at once', async (t) => {
    const { code, expiresAt } = await viewers.createCode(owner, share, STATE)
    t.equal(expiresAt, clock.now() + 60_000)
    const results = await Promise.all(Array.from({ length: 8 }, () => viewers.exchange(share, code, STATE)))
    const [session, ...others] = results.filter((result) => result !== undefined)
    t.equal(others.length, 0)
    t.equal(session?.maxAgeSeconds, (7 * DAY_MS) / 1000)
    t.match(await viewers.find(share, session?.token ?? ''), {
      credential: { ...owner.credential, expiresAt: clock.now() + 7 * DAY_MS },
      ...{ userId: owner.userId, workspaceId: owner.workspaceId },
    })
    t.equal(await viewers.exchange(share, code, STATE), undefined)
    const events = await db
      .selectFrom('audit_log')
      .select(['detail', 'box_id', 'actor_user_id', 'actor_token_id'])
      .where('kind', '=', 'port_share.open')
      .execute()
    t.same(events, [
      {
        detail: JSON.stringify({ shareId: share.id, port: 3000, access: 'members' }),
        ...{ box_id: boxId, actor_user_id: owner.userId, actor_token_id: owner.credential.id },
      },
    ])
  })

  await t.test('only hashes are stored', async (t) => {
    const { code } = await viewers.createOpenCode(owner, share)
    const token = await start(owner)
    const stored = JSON.stringify(await readAllRows(db))
    t.notOk(stored.includes(code))
    t.notOk(stored.includes(token))
    t.not(code, token)
    t.equal(await viewers.find(share, code), undefined, 'a code is no session')
    t.equal(await viewers.exchange(share, token, STATE), undefined, 'a session is no code')
  })

  await t.test('a code is valid for its share, its state and a minute', async (t) => {
    const other = createShare()
    const { code } = await viewers.createCode(owner, share, STATE)
    t.equal(await viewers.exchange(other, code, STATE), undefined)
    t.equal(await viewers.exchange(share, code, 'b'.repeat(64)), undefined)
    t.equal(await viewers.exchange(share, `${code}0`, STATE), undefined)
    t.ok(await viewers.exchange(share, code, STATE), 'the attempts did not use it')
    const late = await viewers.createCode(owner, share, STATE)
    clock.advance(VIEWERS.codeMs)
    t.equal(await viewers.exchange(share, late.code, STATE), undefined)
  })

  await t.test('a code of the main origin becomes one for the state of a browser, once', async (t) => {
    const { code: openCode, expiresAt } = await viewers.createOpenCode(owner, share)
    t.equal(expiresAt, clock.now() + 600_000)
    for (const state of [STATE, '', 'null'])
      t.equal(await viewers.exchange(share, openCode, state), undefined, 'it starts no session itself')
    t.equal(await viewers.isOpenCode(share, openCode), true)
    t.equal(await viewers.isOpenCode(createShare(), openCode), false)
    t.equal(await viewers.redeemOpenCode(createShare(), openCode, STATE), undefined)
    clock.advance(599_999)
    const codes = await Promise.all(
      Array.from({ length: 4 }, () => viewers.redeemOpenCode(share, openCode, STATE)),
    )
    const [code = '', ...others] = codes.filter((found) => found !== undefined)
    t.equal(others.length, 0)
    t.equal(await viewers.isOpenCode(share, openCode), false)
    t.equal(await viewers.exchange(share, code, 'b'.repeat(64)), undefined)
    t.ok(await viewers.exchange(share, code, STATE))

    const late = await viewers.createOpenCode(owner, share)
    const redeemed = await viewers.createOpenCode(owner, share)
    const short = await viewers.redeemOpenCode(share, redeemed.code, STATE)
    clock.advance(60_000)
    t.equal(await viewers.exchange(share, short ?? '', STATE), undefined, 'valid for a minute')
    clock.advance(540_000)
    t.equal(await viewers.redeemOpenCode(share, late.code, STATE), undefined)
  })

  await t.test('a session is valid for its share', async (t) => {
    const token = await start(owner)
    t.ok(await viewers.find(share, token))
    t.equal(await viewers.find(createShare(), token), undefined)
    t.equal(await viewers.find(share, ''), undefined)
  })

  await t.test('a session ends after seven days', async (t) => {
    const token = await start(owner)
    clock.advance(7 * DAY_MS - 1)
    t.ok(await viewers.find(share, token))
    clock.advance(1)
    t.equal(await viewers.find(share, token), undefined)
  })

  await t.test('a session ends with its credential and the rights of its user', async (t) => {
    const changes: Record<string, () => Promise<{ actor: Actor; end: () => Promise<unknown> }>> = {
      async 'the session is ended'() {
        const actor = await addSession(db, await addUser(db, owner, { role: 'member' }), clock.now() + DAY_MS)
        const end = () => db.deleteFrom('sessions').where('id', '=', actor.credential.id).execute()
        return { actor, end }
      },
      async 'the session expires'() {
        const actor = await addSession(db, await addUser(db, owner, { role: 'member' }), clock.now() + DAY_MS)
        return { actor, end: async () => clock.advance(DAY_MS) }
      },
      async 'the user of a session is removed'() {
        const actor = await addSession(db, await addUser(db, owner, { role: 'member' }), clock.now() + DAY_MS)
        return { actor, end: () => updateUser(actor, { removed_at: 1 }) }
      },
      async 'the user becomes a contractor'() {
        const actor = await addSession(db, await addUser(db, owner, { role: 'member' }), clock.now() + DAY_MS)
        return { actor, end: () => updateUser(actor, { role: 'contractor' }) }
      },
      async 'the box gets another owner'() {
        const actor = await addUser(db, owner, { role: 'contractor' })
        await updateBox({ owner_user_id: actor.userId ?? '' })
        return { actor, end: () => updateBox({ owner_user_id: owner.userId ?? '' }) }
      },
      async 'the key is revoked'() {
        const actor = await addUser(db, owner, { role: 'member' })
        return { actor, end: () => updateKey(actor, { revoked_at: 1 }) }
      },
      async 'a key without a user expires'() {
        const { workspaceId } = owner
        const limits = { expiresAt: clock.now() + DAY_MS }
        const actor = await addKeyOf(db, { workspaceId, userId: null }, limits)
        return { actor, end: async () => clock.advance(DAY_MS) }
      },
      async 'the user of a key is removed'() {
        const actor = await addUser(db, owner, { role: 'member' })
        return { actor, end: () => updateUser(actor, { removed_at: 1 }) }
      },
      async 'the key is limited to other boxes'() {
        const actor = await addUser(db, owner, { role: 'member', boxIds: [boxId] })
        return { actor, end: () => updateKey(actor, { box_ids: '["other"]' }) }
      },
      async 'the key is limited to other areas'() {
        const actor = await addUser(db, owner, { role: 'member' })
        return { actor, end: () => updateKey(actor, { access: '{"boxes":"none","workspace":"write"}' }) }
      },
    }
    const updateUser = ({ userId }: Actor, values: { removed_at?: number; role?: 'contractor' }) =>
      db.updateTable('users').set(values).where('id', '=', userId).execute()
    const updateBox = (values: { owner_user_id: string }) =>
      db.updateTable('boxes').set(values).where('id', '=', boxId).execute()
    const updateKey = (
      { credential }: Actor,
      values: { revoked_at?: number; box_ids?: string; access?: string },
    ) => db.updateTable('api_keys').set(values).where('id', '=', credential.id).execute()
    for (const [name, prepare] of Object.entries(changes)) {
      const { actor, end } = await prepare()
      const token = await start(actor)
      const { code } = await viewers.createCode(actor, share, STATE)
      t.match(await viewers.find(share, token), { userId: actor.userId }, name)
      await end()
      t.equal(await viewers.find(share, token), undefined, `${name}: no session`)
      t.equal(await viewers.exchange(share, code, STATE), undefined, `${name}: no new session`)
    }
  })

  await t.test('a user has a limited number of codes and sessions at a share', async (t) => {
    const at = createShare()
    const other = createShare()
    const member = await addUser(db, owner, { role: 'member' })
    const [ofOther, ofMember] = [await start(owner, other), await start(member, at)]
    const tokens: string[] = []
    for (let n = 0; n <= VIEWERS.perUser; n += 1) {
      clock.advance(2000)
      tokens.push(await start(owner, at))
    }
    const codes: string[] = []
    for (let n = 0; n <= VIEWERS.perUser; n += 1) {
      clock.advance(2000)
      codes.push((await viewers.createCode(owner, at, STATE)).code)
    }
    const isValid = await Promise.all(tokens.map(async (token) => !!(await viewers.find(at, token))))
    t.same(isValid, [false, ...Array(VIEWERS.perUser).fill(true)], 'codes do not replace sessions')
    t.equal(await viewers.exchange(at, codes[0] ?? '', STATE), undefined)
    t.ok(await viewers.exchange(at, codes[1] ?? '', STATE))
    t.ok(await viewers.find(other, ofOther))
    t.ok(await viewers.find(at, ofMember))
  })

  await t.test('a user gets a limited number of codes in a time', async (t) => {
    const member = await addUser(db, owner, { role: 'member' })
    const attempts = Array.from({ length: 40 }, () => viewers.createCode(member, createShare(), STATE))
    const results = await Promise.allSettled(attempts)
    t.equal(results.filter(({ status }) => status === 'fulfilled').length, VIEWERS.codes.capacity)
    t.match(results.at(-1), { reason: { code: 'rate_limited', headers: { 'retry-after': '2' } } })
    t.ok(await viewers.createCode(owner, share, STATE), 'another user is not limited')
    clock.advance(2000)
    t.ok(await viewers.createCode(member, share, STATE))
  })

  await t.test('a request of a viewer reads by indexes, and writes nothing', async (t) => {
    const token = await start(owner)
    const session = await addSession(db, owner, clock.now() + DAY_MS)
    const captured = capturePlans(db)
    const before = await readAllRows(db)
    t.ok(await create(captured.db).find(share, token))
    t.same(await readAllRows(db), before)
    const ofKey = await captured.readPlans()
    t.ok(await create(captured.db).find(share, await start(session)))
    const scans = [...ofKey, ...(await captured.readPlans())].filter((line) => /scan|search/i.test(line))
    for (const line of scans)
      t.match(
        line,
        /(share_viewers_token_hash|share_viewers_pkey|boxes_pkey|api_keys_pkey|sessions_pkey|users_pkey|autoindex)/,
      )
  })

  await t.test('expired rows, and those of a share and a box, are deleted', async (t) => {
    clock.advance(8 * DAY_MS)
    t.ok((await viewers.prune(signal)) > 0)
    t.equal(await countRows(), 0)
    const [at, other] = [createShare(), createShare()]
    await viewers.createCode(owner, at, STATE)
    await start(owner, at)
    const token = await start(owner, other)
    clock.advance(VIEWERS.codeMs)
    t.equal(await viewers.prune(signal), 1, 'the code')
    await viewers.deleteOfShare(at.id)
    t.equal(await countRows(), 1)
    t.ok(await viewers.find(other, token))
    await transaction(db, (trx) => deleteViewersOfBox(trx, boxId))
    t.equal(await countRows(), 0)
  })
})
