// The database of a coordinator under test: SQLite, or Postgres in a run on Postgres (on-postgres.ts).
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { resolve } from 'node:path'

const created = new Set<string>()

/**
 * The environment of a coordinator on this data directory. On Postgres, each data directory has a database of its own. The
 * first one of a test file is empty, and the migrations have run in the others: they take most of the time of a start.
 */
export function databaseEnv(dataDir: string): Record<string, string> {
  /** The URL of a server, without a database, the path of a program, and the name of a database. */
  const {
    BOXWOOD_TEST_POSTGRES: server,
    BOXWOOD_TEST_CREATEDB: createdb,
    BOXWOOD_TEST_TEMPLATE: migrated,
  } = process.env
  if (server === undefined || createdb === undefined || migrated === undefined) return {}
  const name = `e2e_${createHash('sha256').update(resolve(dataDir)).digest('hex').slice(0, 16)}`
  if (!created.has(name))
    execFileSync(createdb, [
      `--maintenance-db=${server}/postgres`,
      `--template=${created.size === 0 ? 'template1' : migrated}`,
      name,
    ])
  created.add(name)
  return { BOXWOOD_DATABASE_URL: `${server}/${name}` }
}
