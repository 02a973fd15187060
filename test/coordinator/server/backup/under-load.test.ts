// A backup while the coordinator writes: every change that was acknowledged before the backup started is in it, on SQLite and
// on Postgres, also when it is restored into the other database.
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openDataDirectory } from '../../../../coordinator/base/data-directory.ts'
import { openConfiguredDatabase } from '../../../../coordinator/db/open-configured.ts'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import { writeBackup } from '../../../../coordinator/server/backup/write-backup.ts'
import { startTestCoordinator, type TestCoordinator } from '../../../support/coordinator.ts'
import { type Postgres, startPostgres } from '../../../support/postgres.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { configOf, listNames, NEVER, restore } from './support.ts'

const WRITERS = 4
const OUTPUT = 'x'.repeat(2_000)

/** Writes events until it is stopped. Each is acknowledged when its number is in `acknowledged`. */
function startWriters({ instance }: TestCoordinator, boxId: string) {
  const { db } = instance.context
  const acknowledged: string[] = []
  let isStopped = false
  async function write(writer: number): Promise<void> {
    for (let number = 0; !isStopped; number++) {
      const reason = `${writer}.${number} ${OUTPUT}`
      await transaction(db, async (trx) => {
        const event = {
          box_id: boxId,
          from_state: null,
          to_state: 'running',
          actor: 'system',
          at: number,
        } as const
        await trx
          .insertInto('box_events')
          .values({ ...event, reason: `half of ${reason}` })
          .execute()
        await setImmediate()
        await trx
          .insertInto('box_events')
          .values({ ...event, reason })
          .execute()
      })
      acknowledged.push(reason)
      await setImmediate()
    }
  }
  const writers = Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)))
  return {
    acknowledged,
    async stop() {
      isStopped = true
      await writers
    },
  }
}

async function waitForWrites(acknowledged: readonly string[], count: number): Promise<void> {
  while (acknowledged.length < count) await setImmediate()
}

type Target = { sourceEnv: Record<string, string>; targetEnv: Record<string, string> }

async function checkBackup(t: Test, { sourceEnv, targetEnv }: Target): Promise<void> {
  const source = await startTestCoordinator(t, { env: sourceEnv })
  const { json } = await source.api('POST', '/boxes', {})
  await source.waitForState(json.box.id, 'running')
  const writers = startWriters(source, json.box.id)
  await waitForWrites(writers.acknowledged, 500)
  const before = writers.acknowledged.slice()
  const file = join(createTempDir(t, 'backup'), 'boxwood.tar')
  await writeBackup(configOf(source.dataDir, sourceEnv), file, { includeBoxes: false, signal: NEVER })
  const after = writers.acknowledged.length
  t.ok(after > before.length, `${after - before.length} transactions were committed during the backup`)
  await writers.stop()

  t.equal(statSync(file).mode & 0o777, 0o600)
  t.same(listNames(join(file, '..')), ['boxwood.tar'], 'nothing else is left beside the file')
  t.same(listNames(join(source.dataDir, 'backup-tmp')), [], 'nothing is left in the data directory')

  const dataDir = await restore(t, file, targetEnv)
  t.equal(statSync(dataDir).mode & 0o777, 0o700)
  const restored = await startTestCoordinator(t, { dataDir, infra: source.infra, env: targetEnv })
  t.equal(restored.key, source.key)
  const rows = await restored.instance.context.db
    .selectFrom('box_events')
    .select(['seq', 'reason'])
    .where('box_id', '=', json.box.id)
    .orderBy('seq')
    .execute()
  const found = new Set(rows.map(({ reason }) => reason))
  t.same(
    before.filter((reason) => !found.has(reason)),
    [],
    `${before.length} acknowledged transactions are there`,
  )
  const events = rows.filter(({ reason }) => reason.endsWith(OUTPUT))
  const halves = events.filter(({ reason }) => reason.startsWith('half of'))
  t.equal(halves.length * 2, events.length, 'no transaction is there in part')
  const boxes = (await restored.api('GET', '/boxes')).json.boxes.map(
    ({ hostname }: { hostname: string }) => hostname,
  )
  t.ok(boxes.includes(json.box.hostname))
  // New rows continue the numbers of the restored ones.
  const last = rows.at(-1)?.seq ?? 0
  const created = await restored.api('POST', '/boxes', {})
  t.equal(created.status, 202, created.text)
  const [newest] = await restored.instance.context.db
    .selectFrom('box_events')
    .select('seq')
    .orderBy('seq', 'desc')
    .limit(1)
    .execute()
  t.ok((newest?.seq ?? 0) > last)
}

t.test('SQLite to SQLite', (t) => checkBackup(t, { sourceEnv: {}, targetEnv: {} }))

const postgres = await startPostgres()
if ('skipReason' in postgres) t.test('Postgres', { skip: postgres.skipReason }, async () => undefined)
else {
  t.teardown(() => postgres.stop())
  const newEnv = async (server: Postgres) => ({ BOXWOOD_DATABASE_URL: await server.newDatabase() })
  t.test('Postgres to Postgres', async (t) =>
    checkBackup(t, { sourceEnv: await newEnv(postgres), targetEnv: await newEnv(postgres) }),
  )
  t.test('Postgres to SQLite', async (t) =>
    checkBackup(t, { sourceEnv: await newEnv(postgres), targetEnv: {} }),
  )
  t.test('SQLite to Postgres', async (t) =>
    checkBackup(t, { sourceEnv: {}, targetEnv: await newEnv(postgres) }),
  )
  t.test('a start without the Postgres database of a restore is refused', async (t) => {
    const source = await startTestCoordinator(t, { env: {} })
    const file = join(createTempDir(t, 'backup'), 'boxwood.tar')
    await writeBackup(configOf(source.dataDir), file, { includeBoxes: false, signal: NEVER })
    const dataDir = await restore(t, file, await newEnv(postgres))
    const options = { log: silentLog, onTaken: () => undefined }
    await t.rejects(
      openConfiguredDatabase({ databaseUrl: null }, await openDataDirectory(dataDir), options),
      /are in the Postgres database .* Set BOXWOOD_DATABASE_URL/,
    )
  })
  t.test('a Postgres database with tables is refused, and nothing is restored', async (t) => {
    const env = await newEnv(postgres)
    const source = await startTestCoordinator(t, { env })
    const file = join(createTempDir(t, 'backup'), 'boxwood.tar')
    await writeBackup(configOf(source.dataDir, env), file, { includeBoxes: false, signal: NEVER })
    await source.close()
    await t.rejects(restore(t, file, env), { message: /is not empty/ })
  })
}
