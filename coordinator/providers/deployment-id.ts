// The id of this coordinator in the labels of what it creates outside of its data directory.
import { randomBytes } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export const DEPLOYMENT_ID_FILE = 'deployment-id'

/** Creates the id when it is missing. */
export async function readDeploymentId(dataDir: string): Promise<string> {
  const path = join(dataDir, DEPLOYMENT_ID_FILE)
  const existing = await readId(path)
  if (existing !== null) return existing
  const tempPath = `${path}.${process.pid}`
  await writeFile(tempPath, randomBytes(8).toString('hex'), { mode: 0o600, flush: true })
  // Unlike a rename, a link does not replace the file of a concurrent call.
  await link(tempPath, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(tempPath)
  const id = await readId(path)
  if (id === null)
    throw new Error(`${path} is damaged. Restore it from a backup, or remove it when no box uses an engine.`)
  return id
}

async function readId(path: string): Promise<string | null> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (text === null) return null
  return /^[0-9a-f]{16}$/.test(text) ? text : null
}
