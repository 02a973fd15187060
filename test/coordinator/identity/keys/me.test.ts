// GET /me: the account fields that each kind of key can read.
import t from 'tap'
import type { BoxService } from '../../../../coordinator/boxes/service.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import type { Actor } from '../../../../coordinator/http/actor.ts'
import { createAccountService } from '../../../../coordinator/identity/account/service.ts'
import { type Account, accountSchema, CUSTOMER_STATUSES } from '../../../../shared/api/account.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'
import { addUser, createOwner, createTestBoxService } from '../../../support/workspace.ts'

function createLoad(db: Db, boxes: BoxService) {
  const account = createAccountService({ db, boxes, edgeUrl: 'http://127.0.0.1:7070', billing: null })
  return async (actor: Actor): Promise<Account> => JSON.parse(await account.load(actor))
}

t.test('omits boxes and account fields that the key is not permitted to read', async (t) => {
  const db = await sqliteForTest(t)
  const owner = await createOwner(db)
  const boxes = createTestBoxService(db)
  const load = createLoad(db, boxes)
  const first = await boxes.create(owner, { name: 'first' })
  await boxes.create(owner, { name: 'second' })

  const full = await load(owner)
  t.same(accountSchema.parse(full), full, 'matches the schema without extra fields')
  t.match(full, {
    user: { name: 'Owner', role: 'owner' },
    workspace: { zeroDataRetention: false, closingAt: null },
    billing: { balanceMicros: 0, runwayHours: null },
    edge: { url: 'http://127.0.0.1:7070' },
    key: { kind: 'api', expiresAt: null, boxIds: null },
    box: { hostname: 'first' },
  })
  t.equal(full.boxes.length, 2)
  t.notOk('access' in full)

  const noBoxes = await load(await addUser(db, owner, { role: 'member', access: { workspace: 'read' } }))
  t.match(noBoxes, {
    boxes: [],
    box: null,
    access: { workspace: 'read' },
    customer: { email: /^member-/ },
  })
  t.not(noBoxes.billing, null)

  const noWorkspace = await load(await addUser(db, owner, { role: 'member', access: { boxes: 'read' } }))
  t.equal(noWorkspace.billing, null)
  t.same(Object.keys(noWorkspace.workspace).sort(), ['id', 'name'])
  t.match(noWorkspace.customer, { email: null, githubLogin: null })
  t.equal(noWorkspace.boxes.length, 2)

  const oneBox = await load(await addUser(db, owner, { role: 'member', boxIds: [first.id] }))
  t.same(
    oneBox.boxes.map((box) => box.hostname),
    ['first'],
  )
  t.same(oneBox.key?.boxIds, [first.id])

  t.same((await load(await addUser(db, owner, { role: 'contractor' }))).boxes, [])
  t.match(await load({ ...owner, userId: null, role: 'member' }), { user: null, boxes: [{}, {}] })
})

t.test('GET /me, sentence by sentence of its specification', async (t) => {
  const db = await sqliteForTest(t)
  const owner = await createOwner(db)
  const boxes = createTestBoxService(db)
  const load = createLoad(db, boxes)
  const member = await addUser(db, owner, { role: 'member' })
  const limitKey = (actor: Actor, limits: Partial<Actor>): Actor => ({ ...actor, ...limits })
  const session: Actor = { ...member, credential: { type: 'session', id: 'ses_1', expiresAt: 1 } }
  const setCredential = (changes: object): Actor =>
    ({ ...member, credential: { ...member.credential, ...changes } }) as Actor
  const fig = await boxes.create(owner, { name: 'fig' })
  const plum = await boxes.create(member, { name: 'plum' })

  t.test('a dashboard session has no key, and is not limited', async (t) => {
    const me = await load(session)
    t.notOk('key' in me)
    t.notOk('access' in me)
    t.match(me, {
      user: { email: /^member-/, name: 'member', role: 'member' },
      customer: { email: /^member-/, githubLogin: null, status: 'active' },
      workspace: { zeroDataRetention: false, closingAt: null, purgeAfter: null },
      billing: { balanceMicros: 0 },
    })
  })

  t.test('key.kind, and expiresAt, which is null for a key that never expires', async (t) => {
    t.match((await load(member)).key, { kind: 'api', expiresAt: null })
    const expiresAt = Date.UTC(2030, 0, 1)
    t.match((await load(setCredential({ kind: 'machine', expiresAt }))).key, {
      kind: 'machine',
      expiresAt: '2030-01-01T00:00:00.000Z',
    })
  })

  t.test('boxIds is null unless the key is limited to boxes; then boxes holds only those', async (t) => {
    t.equal((await load(member)).key?.boxIds, null)
    const me = await load(limitKey(member, { boxIds: [plum.id] }))
    t.same(me.key?.boxIds, [plum.id])
    t.same(
      me.boxes.map(({ id }) => id),
      [plum.id],
    )
  })

  t.test('a key without Boxes: Read gets no boxes', async (t) => {
    for (const access of [{ workspace: 'write' }, { workspace: 'read', boxes: 'none' }] as const) {
      const me = await load(limitKey(member, { access }))
      t.match(me, { access, billing: {}, customer: { email: /^member-/ } })
      t.same([me.boxes, me.box], [[], null])
    }
  })

  t.test('a key without Workspace: Read gets no billing, email and settings of the workspace', async (t) => {
    for (const access of [{ boxes: 'write' }, { boxes: 'read', workspace: 'none' }] as const) {
      const me = await load(limitKey(member, { access }))
      t.same(me.workspace, { id: owner.workspaceId, name: 'Boxwood' })
      t.match(me, { access, billing: null, customer: { email: null, githubLogin: null } })
      t.equal(me.boxes.length, 2)
    }
  })

  t.test('user is null for a key with no user', async (t) => {
    const me = await load({ ...member, userId: null, role: 'member' })
    t.match(me, { user: null, customer: { id: owner.workspaceId, email: null }, key: {} })
    t.equal(me.boxes.length, 2)
  })

  t.test(
    'boxes holds every box that the caller may see, also terminated ones; box the oldest live one',
    async (t) => {
      await boxes.remove(owner, fig.id)
      await db
        .updateTable('boxes')
        .set({ observed_state: 'terminated', terminated_at: 1 })
        .where('id', '=', fig.id)
        .execute()
      const me = await load(session)
      t.same(me.boxes.map(({ hostname }) => hostname).sort(), ['fig', 'plum'])
      t.equal(me.box?.hostname, 'plum')
      const contractor = await addUser(db, owner, { role: 'contractor' })
      t.same((await load(contractor)).boxes, [])
    },
  )

  t.test('customer.status is active, unverified or closing', async (t) => {
    t.same(accountSchema.shape.customer.shape.status.options, Object.keys(CUSTOMER_STATUSES))
    t.equal((await load(setCredential({ isUnverified: true }))).customer.status, 'unverified')
    await db
      .updateTable('workspaces')
      .set({ closing_at: Date.UTC(2030, 0, 1), purge_after: Date.UTC(2030, 1, 1) })
      .execute()
    t.match(await load(session), {
      customer: { status: 'closing' },
      workspace: { closingAt: '2030-01-01T00:00:00.000Z', purgeAfter: '2030-02-01T00:00:00.000Z' },
    })
  })
})
