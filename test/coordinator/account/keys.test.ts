// Keys: the first one, a lost one, and those that no longer count.
import t from 'tap'
import {
  createKeyFinder,
  ensureFirstWorkspace,
  hashOf,
  mintOwnerKey,
} from '../../../coordinator/account/keys.ts'
import { newApiKey } from '../../../shared/ids.ts'
import { onEachDatabase } from '../../support/db.ts'
import { testClock } from '../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('the first start makes an owner, later ones nothing', async (t) => {
    const db = await newDb(t)
    const clock = testClock()
    const kept: string[] = []
    const options = { db, clock, newApiKey, keep: async (key: string) => void kept.push(key) }
    const first = await ensureFirstWorkspace(options)
    t.match(first, { created: true, apiKey: /^dcp_[0-9a-f]{48}$/ })
    t.same(await ensureFirstWorkspace(options), { created: false })
    t.same(kept, [first.apiKey])
    const find = createKeyFinder({ db, clock })
    t.match(await find(hashOf(first.apiKey ?? '')), {
      actor: { role: 'owner', keyKind: 'api', keyExpiresAt: null, boxIds: null, access: null },
    })
    t.same(await find(hashOf('dcp_other')), { refused: 'unknown' })
    const [row] = await db.selectFrom('api_keys').selectAll().execute()
    t.notMatch(JSON.stringify(row), first.apiKey, 'the key itself is stored nowhere')
  })

  t.test('a start that dies after the key file was written can be repeated', async (t) => {
    const db = await newDb(t)
    const clock = testClock()
    let file = ''
    const dies = async (key: string) => {
      file = key
      throw new Error('kill -9')
    }
    await t.rejects(ensureFirstWorkspace({ db, clock, newApiKey, keep: dies }))
    const find = createKeyFinder({ db, clock })
    t.same(await find(hashOf(file)), { refused: 'unknown' })
    const keep = async (key: string) => {
      file = key
    }
    t.match(await ensureFirstWorkspace({ db, clock, newApiKey, keep }), { created: true })
    t.match(await find(hashOf(file)), { actor: { role: 'owner' } })
    t.equal((await db.selectFrom('workspaces').selectAll().execute()).length, 1)

    await mintOwnerKey({ db, clock, newApiKey, keep })
    t.match(await find(hashOf(file)), { actor: { role: 'owner' } }, 'a lost key file gets another key')
  })

  t.test('revoked and expired keys say so', async (t) => {
    const db = await newDb(t)
    const clock = testClock()
    const { apiKey } = await ensureFirstWorkspace({ db, clock, newApiKey, keep: async () => undefined })
    const find = createKeyFinder({ db, clock })
    const hash = hashOf(apiKey ?? '')
    const expiresAt = clock.now() + 1000
    await db.updateTable('api_keys').set({ expires_at: expiresAt }).execute()
    t.match(await find(hash), { actor: { keyExpiresAt: expiresAt } })
    clock.advance(1000)
    t.same(await find(hash), { refused: 'expired', expiresAt })
    await db.updateTable('api_keys').set({ revoked_at: 1 }).execute()
    t.same(await find(hash), { refused: 'revoked' })
  })
})
