// The signing keys in use while they are rotated.
import t from 'tap'
import { SecretValue } from '../../../../coordinator/base/sealing/secret-value.ts'
import { PUBLISHED_BEFORE_USE_MS } from '../../../../coordinator/federation/issuer/plan-rotation.ts'
import { createSigningKeys } from '../../../../coordinator/federation/issuer/signing-keys.ts'
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
