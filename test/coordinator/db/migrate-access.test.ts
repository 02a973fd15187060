// A database of the version before users could sign in: its keys, users and audit events after the migration.
import { type Kysely, sql } from 'kysely'
import { Migrator } from 'kysely/migration'
import t from 'tap'
import { dialectTraits } from '../../../coordinator/db/dialects.ts'
import { migrations } from '../../../coordinator/db/migrations/list.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { hashSecret } from '../../../coordinator/http/hash-secret.ts'
import { createKeyFinder } from '../../../coordinator/identity/keys/keys.ts'
import { systemClock } from '../../../shared/clock.ts'
import { onEachDatabase } from '../../support/db.ts'

const KEY = `dcp_${'0123456789abcdef'.repeat(3)}`

async function dropTables(db: Db): Promise<void> {
  if (dialectTraits(db).locksRows) {
    await sql`drop schema public cascade`.execute(db)
    await sql`create schema public`.execute(db)
    return
  }
  const tables = await sql<{ name: string }>`select name from sqlite_master
    where type = 'table' and name not like 'sqlite_%'`.execute(db)
  await sql`pragma foreign_keys = off`.execute(db)
  for (const { name } of tables.rows) await sql`drop table ${sql.table(name)}`.execute(db)
  await sql`pragma foreign_keys = on`.execute(db)
}

async function migrate(db: Db, last?: string): Promise<void> {
  const migrator = new Migrator({
    db: db as Kysely<unknown>,
    provider: { getMigrations: async () => migrations },
  })
  const { error } = await (last === undefined ? migrator.migrateToLatest() : migrator.migrateTo(last))
  if (error) throw error
}

onEachDatabase(t, async (t, newDb) => {
  t.test('keys keep working, emails become lowercase, and audit events get a chain', async (t) => {
    const db = await newDb(t)
    await dropTables(db)
    await migrate(db, '0006-life-of-a-box')
    await sql`insert into workspaces (id, name, zero_data_retention, created_at) values ('ws_1', 'Boxwood', 0, 5)`.execute(
      db,
    )
    await sql`insert into users (id, workspace_id, email, name, role, created_at)
      values ('usr_1', 'ws_1', 'Ada@Example.com', 'Ada', 'owner', 5)`.execute(db)
    await sql`insert into api_keys (id, workspace_id, user_id, hash, kind, created_at)
      values ('key_1', 'ws_1', 'usr_1', ${hashSecret(KEY)}, 'api', 5)`.execute(db)
    for (const at of [20, 10])
      await sql`insert into audit_events (workspace_id, at, kind, origin, actor_kind, actor_user_id, actor_token_id, detail)
        values ('ws_1', ${sql.lit(at)}, 'command_history.delete', 'server', 'user', 'usr_1', 'key_1', '{}')`.execute(
        db,
      )

    await migrate(db)

    t.match(await createKeyFinder({ db, clock: systemClock })(hashSecret(KEY)), {
      actor: {
        credential: { type: 'key', id: 'key_1', kind: 'api', expiresAt: null, isUnverified: false },
        role: 'owner',
      },
    })
    t.match(await db.selectFrom('api_keys').selectAll().execute(), [
      { name: 'owner key', ending: null, last_used_at: null },
    ])
    t.match(await db.selectFrom('users').selectAll().execute(), [
      { email: 'ada@example.com', joined_at: 5, removed_at: null },
    ])
    const events = await db.selectFrom('audit_log').selectAll().orderBy('no').execute()
    t.match(events, [
      { no: 1, at: 20 },
      { no: 2, at: 20 },
    ])
    t.match(await db.selectFrom('audit_heads').selectAll().execute(), [
      { no: 2, at: 20, hash: events[1]?.hash, pruned_no: 0 },
    ])
  })
})
