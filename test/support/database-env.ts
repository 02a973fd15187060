// The database of a coordinator under test: SQLite, or Postgres in a run on Postgres (on-postgres.ts).
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { resolve } from 'node:path'

const created = new Set<string>()

/** The environment of a coordinator on this data directory. On Postgres, each data directory has a database of its own. */
export function databaseEnv(dataDir: string): Record<string, string> {
  /** The URL of a server, without a database, and the path of a program. */
  const { BOXWOOD_TEST_POSTGRES: server, BOXWOOD_TEST_CREATEDB: createdb } = process.env
  if (server === undefined || createdb === undefined) return {}
  const name = `e2e_${createHash('sha256').update(resolve(dataDir)).digest('hex').slice(0, 16)}`
  if (!created.has(name)) execFileSync(createdb, [`--maintenance-db=${server}/postgres`, name])
  created.add(name)
  return { BOXWOOD_DATABASE_URL: `${server}/${name}` }
}
