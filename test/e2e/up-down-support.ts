// Runs the box command with a data directory of its own.
import type { Test } from 'tap'
import { runBox } from '../cli/run-box.ts'
import { databaseEnv } from '../support/database-env.ts'
import { stopDataDirectory } from '../support/stop-data-directory.ts'
import { createTempDir } from '../support/temp-dir.ts'

/** Stops the coordinator and the boxes after the test. */
export function createDataDir(t: Test) {
  const dataDir = createTempDir(t, 'up-down')
  t.teardown(() => stopDataDirectory(dataDir))
  return {
    dataDir,
    box: (args: string[], env: Record<string, string> = {}) =>
      runBox(null, args, {
        env: { ...databaseEnv(dataDir), BOXWOOD_DATA: dataDir, BOXWOOD_LISTEN: '127.0.0.1:0', ...env },
      }),
  }
}
