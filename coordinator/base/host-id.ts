// The id of the host: a random id in a file of the data directory, which is created once and never changes.
import { randomBytes } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isId, newId } from '../../shared/ids.ts'
import { StartError } from './start-error.ts'

export const HOST_FILE = 'host'

/** Creates the id when the file is missing. Throws StartError when it is damaged. */
export async function readHostId(dir: string): Promise<string> {
  const path = join(dir, HOST_FILE)
  const existing = await readText(path)
  if (existing !== null) return check(path, existing)
  const tempPath = `${path}.${randomBytes(6).toString('hex')}.tmp`
  await writeFile(tempPath, newId('host'), { mode: 0o600, flush: true })
  // Unlike a rename, a link does not replace the file of a concurrent call.
  await link(tempPath, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(tempPath)
  return check(path, (await readText(path)) ?? '')
}

function check(path: string, text: string): string {
  if (isId('host', text)) return text
  throw new StartError(
    `${path} is damaged. Restore it from a backup: without its id the coordinator does not find the boxes of this directory.`,
  )
}

/** null: there is no file. */
async function readText(path: string): Promise<string | null> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
