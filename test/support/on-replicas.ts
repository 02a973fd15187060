// Runs test files through two coordinators on one Postgres database, where Postgres is installed: requests alternate.
import type { Test } from 'tap'
import { runOnPostgres } from './on-postgres.ts'

/** @param importFiles imports the test files, whose helpers start coordinators with startTestCoordinator() */
export async function runOnReplicas(t: Test, importFiles: () => Promise<void>): Promise<void> {
  process.env.BOXWOOD_TEST_REPLICAS = '2'
  await runOnPostgres(t, importFiles)
}

/** The option `skip` of a test of a limit that each coordinator has for itself (docs/replicas.md). */
export const skipOnReplicas = (): false | string =>
  process.env.BOXWOOD_TEST_REPLICAS === undefined
    ? false
    : 'each of several coordinators has the limit for itself'
