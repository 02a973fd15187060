// Folders of a test's own.
import { mkdtempSync, realpathSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * An empty folder, by its real path. What a test sets up after it ends before it goes; what something that was only just
 * ended still writes there goes with it.
 */
export function tempFolder(t: { teardown(end: () => unknown): void }, name: string): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `boxwood-${name}-`)))
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}
