// API keys: the first key, a replacement key, and revoked and expired keys.
import t from 'tap'
import { hashSecret } from '../../../../coordinator/http/hash-secret.ts'
import {
  createKeyFinder,
  createOwnerKey,
  ensureFirstWorkspace,
} from '../../../../coordinator/identity/keys/keys.ts'
import { newApiKey } from '../../../../shared/api-key.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { createTestClock } from '../../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('the first start creates an owner and a key, later starts do not', async (t) => {
    const db = await newDb(t)
    const clock = createTestClock()
    const storedKeys: string[] = []
    const options = { db, clock, newApiKey, storeKey: async (key: string) => void storedKeys.push(key) }
    const first = await ensureFirstWorkspace(options)
    t.match(first, { created: true, apiKey: /^dcp_[0-9A-Za-z]{38}$/ })
    t.same(await ensureFirstWorkspace(options), { created: false })
    t.same(storedKeys, [first.apiKey])
    const find = createKeyFinder({ db, clock })
    t.match(await find(hashSecret(first.apiKey ?? '')), {
      actor: {
        role: 'owner',
        credential: { type: 'key', kind: 'api', expiresAt: null, isUnverified: false },
        boxIds: null,
        access: null,
      },
    })
    t.same(await find(hashSecret('dcp_other')), { rejected: 'unknown' })
    const [row] = await db.selectFrom('api_keys').selectAll().execute()
    t.notMatch(JSON.stringify(row), first.apiKey, 'the database does not contain the key itself')
  })

  t.test('a start that crashes after writing the key file can be repeated', async (t) => {
    const db = await newDb(t)
    const clock = createTestClock()
    let keyFile = ''
    const crash = async (key: string) => {
      keyFile = key
      throw new Error('kill -9')
    }
    await t.rejects(ensureFirstWorkspace({ db, clock, newApiKey, storeKey: crash }))
    const find = createKeyFinder({ db, clock })
    t.same(await find(hashSecret(keyFile)), { rejected: 'unknown' })
    const storeKey = async (key: string) => {
      keyFile = key
    }
    t.match(await ensureFirstWorkspace({ db, clock, newApiKey, storeKey }), { created: true })
    t.match(await find(hashSecret(keyFile)), { actor: { role: 'owner' } })
    t.equal((await db.selectFrom('workspaces').selectAll().execute()).length, 1)

    await createOwnerKey({ db, clock, newApiKey, storeKey })
    t.match(
      await find(hashSecret(keyFile)),
      { actor: { role: 'owner' } },
      'a missing key file gets a new key',
    )
    const events = await db.selectFrom('audit_log').selectAll().execute()
    t.match(events, [{ kind: 'key.create', actor_kind: 'system' }], 'the new key is on record')
    t.notMatch(JSON.stringify(events), keyFile)
  })

  t.test('rejects revoked and expired keys with the reason', async (t) => {
    const db = await newDb(t)
    const clock = createTestClock()
    const { apiKey } = await ensureFirstWorkspace({ db, clock, newApiKey, storeKey: async () => undefined })
    const find = createKeyFinder({ db, clock })
    const hash = hashSecret(apiKey ?? '')
    const expiresAt = clock.now() + 1000
    await db.updateTable('api_keys').set({ expires_at: expiresAt }).execute()
    t.match(await find(hash), { actor: { credential: { expiresAt } } })
    clock.advance(1000)
    const identity = {
      credential: { type: 'key', id: /^key_/, kind: 'api' },
      workspaceId: /^ws_/,
      userId: /^usr_/,
    }
    t.match(await find(hash), { rejected: 'expired', expiresAt, identity })
    await db.updateTable('api_keys').set({ revoked_at: 1 }).execute()
    t.match(await find(hash), { rejected: 'revoked', identity })
  })
})
