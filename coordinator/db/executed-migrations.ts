// Which migrations have run in a database, and which versions of Boxwood have used it.

import { type Kysely, sql } from 'kysely'
import { VERSION } from '../../shared/version.ts'
import { migrations } from './migrations/list.ts'
import type { Tables } from './schema.ts'

type Db = Kysely<Tables>

/** The migrations that have run, in order. */
export async function listExecutedMigrations(db: Db): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db)
  return rows.map(({ name }) => name)
}

/** Records that this version uses the database, whose migrations have all run. @param now milliseconds since the epoch */
export async function recordVersion(db: Db, now: number, version = VERSION): Promise<void> {
  await db
    .insertInto('program_versions')
    .values({ version, started_at: now })
    .onConflict((conflict) => conflict.column('version').doUpdateSet({ started_at: now }))
    .execute()
}

/** Why this version cannot use the database; null: no newer version has used it. */
export async function describeNewerVersion(db: Db): Promise<string | null> {
  const executed = await listExecutedMigrations(db)
  const unknown = executed.filter((name) => !(name in migrations)).at(-1)
  if (unknown === undefined) return null
  const newest = await db
    .selectFrom('program_versions')
    .select('version')
    .orderBy('started_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  const version = newest?.version ?? VERSION
  const [writer, needed] =
    version === VERSION
      ? [`a newer build of Boxwood ${version}`, 'that build']
      : [`Boxwood ${version}`, `Boxwood ${version}`]
  return `The database was last used by ${writer}. This is Boxwood ${VERSION}, which does not know its migration ${unknown}, and nothing was changed. Start ${needed} or a newer one, or restore a backup of this version into an empty data directory.`
}
