// End-to-end tests of a coordinator in a process of its own, on Postgres. test/coordinator/db/postgres.test.ts tests its lock.
import t from 'tap'
import { runOnPostgres } from '../support/on-postgres.ts'

await runOnPostgres(t, async () => {
  await import('./commands-coordinator-killed.test.ts')
  await import('./up-down.test.ts')
})
