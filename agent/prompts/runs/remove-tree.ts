// Deletes the directory of a run, and the temporary files of its coding agent.
import { chmod, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** A background process may still create files in the directory: rm() retries on ENOTEMPTY. */
const OPTIONS = { recursive: true, force: true, maxRetries: 5 }

/** Also deletes directories that are not writable, such as those of the module cache of Go. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, OPTIONS)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code !== 'EACCES' && code !== 'EPERM') throw error
    await makeWritable(path)
    await rm(path, OPTIONS)
  }
}

async function makeWritable(dir: string): Promise<void> {
  await chmod(dir, 0o700)
  for (const entry of await readdir(dir, { withFileTypes: true }))
    if (entry.isDirectory()) await makeWritable(join(dir, entry.name))
}
