// The requests on API keys, on each database.
import t from 'tap'
import type { Db } from '../../../../coordinator/db/open.ts'
import { type AccessChange, subscribeToAccessChanges } from '../../../../coordinator/http/access-changes.ts'
import { hashSecret } from '../../../../coordinator/http/hash-secret.ts'
import { createKeyService } from '../../../../coordinator/identity/keys/key-service.ts'
import { createKeyFinder, createKeyRow } from '../../../../coordinator/identity/keys/keys.ts'
import { newApiKey } from '../../../../shared/api-key.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { LIMITS } from '../../../../shared/limits.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { capturePlans } from '../../../support/query-plan.ts'
import { addUser, createOwner, createTestBoxService } from '../../../support/workspace.ts'

async function setUp(db: Db) {
  const owner = await createOwner(db)
  const boxes = createTestBoxService(db)
  const changes: AccessChange[] = []
  subscribeToAccessChanges(db, (change) => changes.push(change), { onGap: () => undefined })
  const keys = createKeyService({ db, clock: systemClock, newApiKey, boxes })
  const find = createKeyFinder({ db, clock: systemClock })
  return { owner, boxes, keys, changes, find: (secret: string) => find(hashSecret(secret)) }
}

onEachDatabase(t, async (t, newDb) => {
  t.test(
    'open requests are checked again after a key loses something, not after other changes',
    async (t) => {
      const { owner, boxes, keys, changes } = await setUp(await newDb(t))
      const box = await boxes.create(owner, { name: 'fig' })
      const { key } = await keys.create(owner, { name: 'ci' })
      await keys.update(owner, key.id, { name: 'CI' })
      t.same(changes, [])
      const change = { workspaceId: owner.workspaceId, credentialId: key.id }
      await keys.update(owner, key.id, { boxIds: [box.id] })
      t.same(changes.splice(0), [change])
      await keys.update(owner, key.id, { access: 'read' })
      t.same(changes.splice(0), [change])
      await keys.update(owner, key.id, { boxIds: null, access: null })
      t.same(changes, [])
      await keys.rotate(owner, key.id)
      t.same(changes.splice(0), [change])
      await keys.revoke(owner, key.id)
      await keys.revoke(owner, key.id)
      t.same(changes, [change])
    },
  )

  t.test('a contractor can limit a key to the own boxes, and no user to deleted boxes', async (t) => {
    const db = await newDb(t)
    const { owner, boxes, keys } = await setUp(db)
    const contractor = await addUser(db, owner, { role: 'contractor' })
    const own = await boxes.create(contractor, { name: 'fig' })
    const other = await boxes.create(owner, { name: 'plum' })
    const { key } = await keys.create(contractor, { name: 'ci', boxIds: [own.id] })
    t.same(key.boxIds, [own.id])
    const denied = { code: 'not_found' }
    await t.rejects(keys.create(contractor, { name: 'ci', boxIds: [own.id, other.id] }), denied)
    await t.rejects(keys.update(contractor, key.id, { boxIds: [other.id] }), denied)
    await t.rejects(keys.update(owner, key.id, { boxIds: [other.id] }), denied, 'also an owner')
    await boxes.remove(contractor, own.id)
    await t.rejects(keys.create(contractor, { name: 'ci', boxIds: [own.id] }), denied)
    t.match(
      await keys.update(contractor, key.id, { name: 'x' }),
      { boxIds: [own.id] },
      'existing limits stay',
    )
  })

  t.test('rotating twice at the same time leaves one secret that works', async (t) => {
    const { owner, keys, find } = await setUp(await newDb(t))
    const { key, secret } = await keys.create(owner, { name: 'ci' })
    const rotated = await Promise.all([keys.rotate(owner, key.id), keys.rotate(owner, key.id)])
    const found = await Promise.all([secret, ...rotated.map((result) => result.secret)].map(find))
    t.same(found.map((result) => 'actor' in result).sort(), [false, false, true])
  })

  t.test('a user has a limited number of keys that are not revoked', async (t) => {
    const db = await newDb(t)
    const { owner, keys } = await setUp(db)
    const { workspaceId, userId } = owner
    const rows = Array.from({ length: LIMITS.keysPerUser }, (_, i) =>
      createKeyRow({ workspaceId, userId, hash: `hash ${i}`, now: 0 }),
    )
    await db.insertInto('api_keys').values(rows).execute()
    await t.rejects(keys.create(owner, { name: 'ci' }), { code: 'not_allowed', message: /Revoke one first/ })
    await keys.create(owner, { name: 'ci', user: null })
    for (const row of rows.slice(0, 2)) await keys.revoke(owner, row.id)
    t.match(await keys.create(owner, { name: 'ci' }), { key: { name: 'ci' } })
  })

  t.test('lists keys by an index, without revoked keys', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    const { owner, keys } = await setUp(db)
    const member = await addUser(db, owner, { role: 'member' })
    for (const [actor, query] of [
      [owner, {}],
      [owner, { limit: 10 }],
      [owner, { revoked: true }],
      [member, {}],
      [member, { revoked: true }],
    ] as const) {
      await readPlans()
      await keys.list(actor, query)
      const plans = (await readPlans()).join('\n')
      t.match(plans, /api_keys_(live|by_workspace|by_user)/, `${actor.role} ${JSON.stringify(query)}`)
      t.notMatch(plans, /(SCAN|Seq Scan on) api_keys/)
      if (actor.role === 'owner' && !('revoked' in query)) t.match(plans, /api_keys_live/)
    }
  })
})
