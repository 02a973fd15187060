// GET /me: the account fields that each kind of key can read.
import t from 'tap'
import { createAccountService } from '../../../coordinator/account/service.ts'
import { accountSchema } from '../../../shared/api/account.ts'
import { sqliteForTest } from '../../support/db.ts'
import { addUser, createOwner, createTestBoxService } from '../../support/workspace.ts'

t.test('omits boxes and account fields that the key is not permitted to read', async (t) => {
  const db = await sqliteForTest(t)
  const owner = await createOwner(db)
  const boxes = createTestBoxService(db)
  const { load } = createAccountService({ db, boxes, edgeUrl: 'http://127.0.0.1:7070' })
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
    customer: { email: 'member@example.com' },
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
  t.same(oneBox.key.boxIds, [first.id])

  t.same((await load(await addUser(db, owner, { role: 'contractor' }))).boxes, [])
  t.match(await load({ ...owner, userId: null, role: 'member' }), { user: null, boxes: [{}, {}] })
})
