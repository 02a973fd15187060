// The signing keys in use while they are rotated, by one coordinator and by two.
import t from 'tap'
import { SecretValue } from '../../../../coordinator/base/sealing/secret-value.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import { PUBLISHED_BEFORE_USE_MS } from '../../../../coordinator/federation/issuer/plan-rotation.ts'
import { createSigningKeys } from '../../../../coordinator/federation/issuer/signing-keys.ts'
import { openPair, startSharedPostgres } from '../../../support/shared-databases.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'
import { createTestClock } from '../../../support/workspace.ts'

const keyring = {
  seal: (value: SecretValue) => ({ sealed: value.reveal(), keyId: 'k1' }),
  open: (sealed: string) => new SecretValue(sealed),
}

t.test('a key that is retired while it is loaded does not sign later tokens', async (t) => {
  const db = await sqliteForTest(t)
  const clock = createTestClock()
  const create = () => createSigningKeys({ db, clock, keyring })
  const first = await create().getActive()
  clock.advance(PUBLISHED_BEFORE_USE_MS)

  const restarted = create()
  const importStarted = Promise.withResolvers<void>()
  const rotated = Promise.withResolvers<void>()
  const { subtle } = crypto
  const importKey = subtle.importKey.bind(subtle)
  Object.assign(subtle, {
    async importKey(...args: Parameters<typeof importKey>) {
      importStarted.resolve()
      await rotated.promise
      return importKey(...args)
    },
  })
  t.teardown(() => Reflect.deleteProperty(subtle, 'importKey'))
  const loading = restarted.getActive()
  await importStarted.promise
  const { activeKeyId } = await restarted.rotate(() => undefined)
  rotated.resolve()
  t.equal((await loading).id, first.id)
  t.not(activeKeyId, first.id)
  t.equal((await restarted.getActive()).id, activeKeyId)
})

const countStates = async (db: Db) => {
  const keys = await db.selectFrom('federation_keys').select('state').orderBy('state').execute()
  return keys.map(({ state }) => state)
}

t.test('a coordinator uses the keys that another one has created meanwhile', async (t) => {
  const db = await sqliteForTest(t)
  const clock = createTestClock()
  const [slow, fast] = [createSigningKeys({ db, clock, keyring }), createSigningKeys({ db, clock, keyring })]
  const creationStarted = Promise.withResolvers<void>()
  const created = Promise.withResolvers<void>()
  const { subtle } = crypto
  const generateKey = subtle.generateKey.bind(subtle) as (...args: unknown[]) => Promise<unknown>
  Object.assign(subtle, {
    async generateKey(...args: unknown[]) {
      creationStarted.resolve()
      await created.promise
      return generateKey(...args)
    },
  })
  const loading = slow.getActive()
  await creationStarted.promise
  Reflect.deleteProperty(subtle, 'generateKey')
  const { id } = await fast.getActive()
  created.resolve()
  t.equal((await loading).id, id)
  t.same(await countStates(db), ['active', 'next'])
})

t.test('two coordinators create and rotate the keys once', async (t) => {
  const postgres = await startSharedPostgres(t)
  await t.test('on Postgres', { skip: postgres.skip }, async (t) => {
    const pair = await openPair(t, await postgres.newDatabase())
    const clock = createTestClock()
    const [first, second] = [
      createSigningKeys({ db: pair[0], clock, keyring }),
      createSigningKeys({ db: pair[1], clock, keyring }),
    ]
    const [{ id }, other] = await Promise.all([first.getActive(), second.getActive()])
    t.equal(other.id, id)
    t.same(await countStates(pair[0]), ['active', 'next'])
    clock.advance(PUBLISHED_BEFORE_USE_MS)
    const rotations = await Promise.all([first.rotate(() => undefined), second.rotate(() => undefined)])
    t.same(rotations.map(({ rotated }) => rotated).sort(), [false, true])
    t.equal(rotations[0].activeKeyId, rotations[1].activeKeyId)
    t.same(await countStates(pair[0]), ['active', 'next', 'retired'])
  })
})
