// Files of earlier versions in the data directory: their values are in the database after a start, and the files are removed.
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createSigningKey, openSigningKey } from '../../../coordinator/agents/bundles/signing-key.ts'
import { newMasterKey } from '../../../coordinator/base/sealing/master-key.ts'
import { createKeyring } from '../../../coordinator/base/sealing/master-keyring.ts'
import { openDatabase } from '../../../coordinator/db/open.ts'
import { findValue } from '../../../coordinator/deployment/store.ts'
import { openDeploymentId } from '../../../coordinator/providers/deployment-id.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { onEachDatabase } from '../../support/db.ts'
import { TEST_HOST } from '../../support/replica.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { backUp, restore } from '../server/backup/support.ts'

const ID = '0123456789abcdef'
const keyring = createKeyring([newMasterKey()])

/** The content of the file of an earlier version. */
function createKeyFile() {
  const { privateKey, publicKey } = createSigningKey()
  return { pem: privateKey.export({ format: 'pem', type: 'pkcs8' }) as string, publicKey }
}

await onEachDatabase(t, async (t, newDb) => {
  await t.test('the values of the files are taken over, and are those of later starts', async (t) => {
    const db = await newDb(t)
    const dataDir = createTempDir(t, 'files')
    const { pem, publicKey } = createKeyFile()
    writeFileSync(join(dataDir, 'agent-signing-key.pem'), pem, { mode: 0o600 })
    writeFileSync(join(dataDir, 'deployment-id'), ID)
    t.equal((await openSigningKey({ db, keyring, dataDir })).publicKey, publicKey)
    t.equal(await openDeploymentId({ db, host: TEST_HOST, dataDir }), ID)
    t.same(readdirSync(dataDir), [])
    const other = { db, keyring, dataDir: createTempDir(t, 'other') }
    t.equal((await openSigningKey(other)).publicKey, publicKey, 'without a file')
    t.equal(await openDeploymentId({ ...other, host: TEST_HOST }), ID)
    const ofOtherHost = await openDeploymentId({ ...other, host: 'hst_other' })
    t.not(ofOtherHost, ID, 'two hosts may use one engine')
    t.equal(await openDeploymentId({ ...other, host: 'hst_other' }), ofOtherHost)

    // A start that was killed has not removed the files.
    writeFileSync(join(dataDir, 'agent-signing-key.pem'), pem)
    writeFileSync(join(dataDir, 'deployment-id'), ID)
    t.equal((await openSigningKey({ db, keyring, dataDir })).publicKey, publicKey)
    t.equal(await openDeploymentId({ db, host: TEST_HOST, dataDir }), ID)
    t.same(readdirSync(dataDir), [])
  })

  await t.test('files with other values than the database stop the start, and stay', async (t) => {
    const db = await newDb(t)
    const dataDir = createTempDir(t, 'files')
    const { publicKey } = await openSigningKey({ db, keyring, dataDir })
    const id = await openDeploymentId({ db, host: TEST_HOST, dataDir })
    const { pem } = createKeyFile()
    const [keyFile, idFile] = [join(dataDir, 'agent-signing-key.pem'), join(dataDir, 'deployment-id')]
    writeFileSync(keyFile, pem)
    writeFileSync(idFile, ID)
    await t.rejects(openSigningKey({ db, keyring, dataDir }), {
      name: 'StartError',
      message: /agent-signing-key\.pem differs from the value in the database.* move the file away/,
    })
    await t.rejects(openDeploymentId({ db, host: TEST_HOST, dataDir }), {
      name: 'StartError',
      message: /deployment-id differs/,
    })
    t.equal(readFileSync(keyFile, 'utf8'), pem)
    t.equal(readFileSync(idFile, 'utf8'), ID)
    const other = createTempDir(t, 'other')
    t.equal((await openSigningKey({ db, keyring, dataDir: other })).publicKey, publicKey)
    t.equal(await openDeploymentId({ db, host: TEST_HOST, dataDir: other }), id)
  })

  await t.test('damaged files are not used', async (t) => {
    const db = await newDb(t)
    const dataDir = createTempDir(t, 'files')
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    for (const pem of ['', 'no key', rsa.export({ format: 'pem', type: 'pkcs8' })]) {
      writeFileSync(join(dataDir, 'agent-signing-key.pem'), pem)
      await t.rejects(openSigningKey({ db, keyring, dataDir }), {
        name: 'StartError',
        message: /does not contain an Ed25519 private key/,
      })
    }
    for (const id of ['', `${ID}\n`, 'x'.repeat(16)]) {
      writeFileSync(join(dataDir, 'deployment-id'), id)
      await t.rejects(openDeploymentId({ db, host: TEST_HOST, dataDir }), {
        name: 'StartError',
        message: /is damaged/,
      })
    }
    for (const name of ['agent_signing_key', `deployment_id ${TEST_HOST}`])
      t.equal(await findValue(db, name), undefined, 'nothing was stored')
    t.equal(readdirSync(dataDir).length, 2)
  })
})

t.test('a coordinator takes over the key of a backup that an earlier version has made', async (t) => {
  const source = createTempDir(t, 'earlier')
  const { pem, publicKey } = createKeyFile()
  writeFileSync(join(source, 'agent-signing-key.pem'), pem, { mode: 0o600 })
  writeFileSync(join(source, 'deployment-id'), ID, { mode: 0o600 })
  const file = join(source, 'boxwood.db')
  await (await openDatabase({ kind: 'sqlite', file, migrateTo: '0030-warm-machines' })).destroy()
  const dataDir = await restore(t, await backUp(t, source))
  t.ok(existsSync(join(dataDir, 'agent-signing-key.pem')))
  t.ok(existsSync(join(dataDir, 'deployment-id')))

  const first = await startTestCoordinator(t, { dataDir, env: { BOXWOOD_DATABASE_URL: '' } })
  t.equal(await first.instance.context.agentBundles.publicKey(), publicKey)
  t.notOk(existsSync(join(dataDir, 'agent-signing-key.pem')))
  const openId = ({ instance }: typeof first) =>
    openDeploymentId({
      db: instance.context.db,
      host: instance.dataDirectory.host,
      dataDir: instance.dataDirectory.dir,
    })
  t.equal(await openId(first), ID)

  // A backup of this version has the values in its database.
  const restored = await restore(t, await backUp(t, dataDir))
  t.notOk(existsSync(join(restored, 'agent-signing-key.pem')))
  t.notOk(existsSync(join(restored, 'deployment-id')))
  await first.close()
  const second = await startTestCoordinator(t, { dataDir: restored, env: { BOXWOOD_DATABASE_URL: '' } })
  t.equal(await second.instance.context.agentBundles.publicKey(), publicKey)
  t.equal(await openId(second), ID)
})
