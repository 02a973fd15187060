// The values that all coordinators share: coordinators that start at the same time agree, and only the master keys decrypt secrets.
import t from 'tap'
import { newMasterKey } from '../../../coordinator/base/sealing/master-key.ts'
import { createKeyring } from '../../../coordinator/base/sealing/master-keyring.ts'
import { SecretValue } from '../../../coordinator/base/sealing/secret-value.ts'
import { findValue, replaceValue } from '../../../coordinator/deployment/store.ts'
import { ensureSealedValue, ensureValue, readSealedValue } from '../../../coordinator/deployment/values.ts'
import { createOwnerSecret } from '../../../coordinator/identity/sessions/owner-secret.ts'
import { onEachDatabase } from '../../support/db.ts'

const STARTS = Array.from({ length: 8 }, (_, n) => `value ${n}`)

await onEachDatabase(t, async (t, newDb) => {
  await t.test('simultaneous starts on an empty database get the same values', async (t) => {
    const db = await newDb(t)
    const keyring = createKeyring([newMasterKey()])
    const plain = await Promise.all(STARTS.map((value) => ensureValue(db, 'plain', () => value)))
    t.equal(new Set(plain).size, 1)
    const secrets = await Promise.all(
      STARTS.map((value) => ensureSealedValue({ db, keyring }, 'secret', () => new SecretValue(value))),
    )
    t.equal(new Set(secrets.map((secret) => secret.reveal())).size, 1)
    t.equal(await ensureValue(db, 'plain', () => 'of a later start'), plain[0])
    t.match(await findValue(db, 'plain'), { value: plain[0], key_id: null })
    t.match(await findValue(db, 'secret'), { value: /^v1\./, key_id: keyring.activeKeyId })
  })

  await t.test('a secret value is bound to its name and its master key', async (t) => {
    const db = await newDb(t)
    const keyring = createKeyring([newMasterKey()])
    await ensureSealedValue({ db, keyring }, 'one', () => new SecretValue('first'))
    await ensureSealedValue({ db, keyring }, 'two', () => new SecretValue('second'))
    const other = { db, keyring: createKeyring([newMasterKey()]) }
    await t.rejects(readSealedValue(other, 'one'), { name: 'SealedValueError' })
    const row = await findValue(db, 'two')
    if (row === undefined) throw new Error('the value is missing')
    await replaceValue(db, { ...row, name: 'one' })
    await t.rejects(readSealedValue({ db, keyring }, 'one'), { name: 'SealedValueError' })
  })

  await t.test('the secret of the owner is replaced by the start of the only coordinator', async (t) => {
    const db = await newDb(t)
    const keyring = createKeyring([newMasterKey()])
    const first = createOwnerSecret({ db, keyring })
    await t.rejects(first.read(), /has no secret/)
    await first.prepare(true)
    const secret = await first.read()
    const second = createOwnerSecret({ db, keyring })
    await second.prepare(false)
    t.equal(await second.read(), secret, 'the other coordinator still runs')
    const third = createOwnerSecret({ db, keyring })
    await third.prepare(true)
    t.not(await third.read(), secret)
    t.equal(await second.read(), await third.read(), 'a coordinator that was not seen accepts the new secret')
  })

  await t.test('other coordinators that start at the same time get one secret of the owner', async (t) => {
    const db = await newDb(t)
    const keyring = createKeyring([newMasterKey()])
    const starts = STARTS.map(() => createOwnerSecret({ db, keyring }))
    await Promise.all(starts.map((start) => start.prepare(false)))
    t.equal(new Set(await Promise.all(starts.map((start) => start.read()))).size, 1)
  })
})
