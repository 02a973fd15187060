// The SQLite file: exclusive use, file modes, deadlock detection and durability.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import t from 'tap'
import { openDatabase } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { firstOutput } from '../../support/first-output.ts'
import { databaseFile, sqliteForTest } from '../../support/sqlite.ts'

t.test('rejects a second coordinator on the same file with a readable message', async (t) => {
  const file = databaseFile(t)
  const first = await openDatabase({ kind: 'sqlite', file })
  await t.rejects(openDatabase({ kind: 'sqlite', file }), {
    message: /Another coordinator uses this data directory: .*boxwood\.db is locked/,
  })
  await first.destroy()
  const second = await openDatabase({ kind: 'sqlite', file })
  await second.destroy()
})

t.test('creates the database files with mode 0600', async (t) => {
  const file = databaseFile(t)
  const db = await openDatabase({ kind: 'sqlite', file })
  t.teardown(() => db.destroy())
  await db.deleteFrom('workspaces').execute()
  for (const name of [file, `${file}-wal`]) t.equal(statSync(name).mode & 0o777, 0o600, name)
})

t.test('rejects a query that bypasses the open transaction instead of deadlocking', async (t) => {
  const db = await sqliteForTest(t)
  await t.rejects(
    transaction(db, () => db.selectFrom('workspaces').selectAll().execute()),
    { message: /must go through the transaction/ },
  )
  t.same(await db.selectFrom('workspaces').selectAll().execute(), [], 'the next query works')
})

t.test('after kill -9, committed rows are there and the lock is released', async (t) => {
  const file = databaseFile(t)
  const script = new URL('../../fixtures/commit-row-and-wait.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [script, file], { stdio: ['ignore', 'pipe', 'inherit'] })
  await firstOutput(child)
  child.kill('SIGKILL')
  await once(child, 'exit')
  const db = await openDatabase({ kind: 'sqlite', file })
  t.teardown(() => db.destroy())
  t.same(
    (await db.selectFrom('workspaces').select('id').execute()).map((row) => row.id),
    ['committed'],
  )
})

t.test('uses settings under which a committed write survives a power cut', async (t) => {
  const db = await sqliteForTest(t)
  const pragma = async (name: string) => {
    const { rows } = await db.executeQuery<Record<string, unknown>>({
      ...db.selectFrom('workspaces').selectAll().compile(),
      sql: `pragma ${name}`,
    })
    return Object.values(rows[0] ?? {})[0]
  }
  t.equal(await pragma('journal_mode'), 'wal')
  t.equal(await pragma('synchronous'), 2, 'FULL')
  t.equal(await pragma('foreign_keys'), 1)
})
