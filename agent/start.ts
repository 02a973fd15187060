// Entry point of the bundled agent: enables Node's compile cache before the agent is loaded.
import { accessSync, constants } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

/** The coordinator writes the cache. One that this box can write to, as other boxes of the same user can, is not used. */
const directory = join(import.meta.dirname, 'compile-cache')

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

// portable: the directory has another path in a box than on the host.
if (!isWritable(directory)) enableCompileCache({ directory, portable: true })
await import('./main.ts')
