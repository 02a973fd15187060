// The measurements of queries and transactions, on each database.
import t, { type Test } from 'tap'
import type { StoreObserver } from '../../../coordinator/db/observed-driver.ts'
import { type DatabaseConfig, openDatabase } from '../../../coordinator/db/open.ts'
import { prepareQuery } from '../../../coordinator/db/prepared-queries.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { createPostgresConfig } from '../../support/db.ts'
import { startPostgres } from '../../support/postgres.ts'
import { databaseFile } from '../../support/sqlite.ts'

const workspace = (id: string) => ({ id, name: id, zero_data_retention: 0 as const, created_at: 0 })

function createRecorder() {
  const events: string[] = []
  const durations: number[] = []
  const observer: StoreObserver = {
    onQuery(operation, ms, failed) {
      events.push(failed ? `failed ${operation}` : operation)
      durations.push(ms)
    },
    onAcquire: (waitMs) => void durations.push(waitMs),
    onTransaction(outcome, ms, endMs) {
      events.push(outcome)
      durations.push(ms, endMs, ms - endMs)
    },
  }
  return { events, durations, observer }
}

async function testObserver(t: Test, config: DatabaseConfig): Promise<void> {
  const { events, durations, observer } = createRecorder()
  const db = await openDatabase({ ...config, observer })
  t.teardown(() => db.destroy())
  events.length = 0
  await db.insertInto('workspaces').values(workspace('a')).execute()
  await transaction(db, async (trx) => {
    await trx.updateTable('workspaces').set({ name: 'b' }).execute()
    await trx.selectFrom('workspaces').select('id').execute()
  })
  t.same(events.splice(0), ['insert', 'update', 'select', 'commit'])
  await t.rejects(
    transaction(db, async (trx) => {
      await trx.insertInto('workspaces').values(workspace('a')).execute()
    }),
    { message: /unique/i },
  )
  t.same(events.splice(0), ['failed insert', 'rollback'])
  await db.deleteFrom('workspaces').execute()
  t.same(events.splice(0), ['delete'])
  const find = prepareQuery<{ id: string }, [id: string]>(db, (database) =>
    database.selectFrom('workspaces').select('id').where('id', '=', ''),
  )
  const count = durations.length
  await find('a')
  t.same(events.splice(0), ['select'])
  t.equal(durations.length - count, 2, 'its wait for a connection and its duration are measured')
  const invalid = prepareQuery(db, () => ({
    compile: () => ({ ...db.selectFrom('workspaces').selectAll().compile(), sql: 'select from from' }),
  }))
  await t.rejects(invalid())
  t.same(events.splice(0), ['failed select'])
  t.ok(durations.length > 0 && durations.every((ms) => ms >= 0), 'no duration is negative')
}

t.test('on SQLite', (t) => testObserver(t, { kind: 'sqlite', file: databaseFile(t) }))

t.test('on Postgres', async (t) => {
  const postgres = await startPostgres()
  if ('skipReason' in postgres)
    return void (await t.test('measures queries', { skip: postgres.skipReason }, async () => undefined))
  t.teardown(() => postgres.stop())
  const config = createPostgresConfig(await postgres.newDatabase())
  await t.test('measures queries', (t) => testObserver(t, config))
})
