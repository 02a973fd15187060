// A backup has the files of its own host, and says how many boxes and archives are missing.
import t, { type Test } from 'tap'
import { type Db, openDatabase } from '../../../../coordinator/db/open.ts'
import { prepareBackup } from '../../../../coordinator/server/backup/prepare.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { FakeInfrastructure } from '../../../support/fake-infrastructure.ts'
import { databaseFile, sqliteForTest } from '../../../support/sqlite.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { createTwoHosts } from '../../../support/two-hosts.ts'
import { NEVER } from './support.ts'

const log = { warn: () => undefined }

async function prepare(t: Test, db: Db, host: string, infra: FakeInfrastructure) {
  const dataDir = createTempDir(t, 'data')
  const provider = {
    ...infra.provider,
    holdArchives: async () => ({ dir: dataDir, release: () => undefined }),
  }
  const providers = { all: [provider], inRegion: () => provider }
  const source = { db, host, dataDir, hasMountedKeys: false, clock: systemClock, providers, log }
  const { description, release } = await prepareBackup(source, { includeBoxes: true, signal: NEVER })
  await release()
  return description
}

t.test('boxes and archives of another host are left out and counted', async (t) => {
  const { db, owner, a, b, createRunningBox, waitForSnapshot } = await createTwoHosts(
    t,
    await sqliteForTest(t),
  )
  await a.start()
  await b.start()
  const [ofA, ofB] = [await createRunningBox(a), await createRunningBox(b)]
  const snapshot = await b.snapshots.create(owner, { boxId: ofB, name: 'first' })
  await waitForSnapshot(snapshot.id)
  const description = await prepare(t, db, a.host, a.infra)
  t.match(description, { boxes: { included: 1, omitted: 1 } })
  // The archive of the captured box is not in the directory of the test.
  t.equal(description.archives.omitted, 2)
  t.equal(a.infra.countCalls('capture', ofA), 1)
  t.equal(a.infra.countCalls('capture', ofB), 0)
})

t.test('a backup without a coordinator can be of a database of a version without hosts', async (t) => {
  const db = await openDatabase({ kind: 'sqlite', file: databaseFile(t), migrateTo: '0031-replicas' })
  t.teardown(() => db.destroy())
  const description = await prepare(t, db, 'hst_test', new FakeInfrastructure())
  t.match(description, { boxes: { included: 0, omitted: 0 }, archives: { omitted: 0 } })
  t.equal(description.migrations.at(-1), '0031-replicas')
})
