// Temporary directories of tests.
import { mkdtempSync, realpathSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Creates an empty directory and returns its real path. Teardowns registered later run before the removal. The removal
 * retries, because a process that was just terminated may still write files.
 */
export function createTempDir(t: { teardown(callback: () => unknown): void }, name: string): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), `boxwood-${name}-`)))
  t.teardown(() => rm(dir, { recursive: true, force: true, maxRetries: 10 }))
  return dir
}
