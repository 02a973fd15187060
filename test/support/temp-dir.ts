// Temporary directories of tests.
import { mkdtempSync, realpathSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MEMORY_DIR_VARIABLE } from './suite/memory-dir.ts'

/** The directory of databases: in memory when the runner of the suite has found one, where creating files is much faster. */
export const getDatabaseDir = (): string => process.env[MEMORY_DIR_VARIABLE] || tmpdir()

/**
 * Creates an empty directory and returns its real path. Teardowns registered later run before the removal. The removal
 * retries, because a process that was just terminated may still write files.
 */
export function createTempDir(
  t: { teardown(callback: () => unknown): void },
  name: string,
  parent = tmpdir(),
): string {
  const dir = realpathSync(mkdtempSync(join(parent, `boxwood-${name}-`)))
  t.teardown(() => rm(dir, { recursive: true, force: true, maxRetries: 10 }))
  return dir
}
