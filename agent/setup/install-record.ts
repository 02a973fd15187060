// Reads and writes install.json: the box, the service and the user of an installation, and the directories that the installer
// created outside of its prefix.
import { mkdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import * as z from 'zod'
import { SERVICE_KINDS } from './services/service.ts'

const schema = z.object({
  boxId: z.uuid(),
  name: z.string(),
  service: z.enum(SERVICE_KINDS),
  /** The user of the commands. Null: the user that has run the installer. */
  user: z.string().nullable(),
  /** The outermost first. They are removed with the agent if they are empty then. */
  createdDirectories: z.array(z.string()),
})
export type InstallRecord = z.infer<typeof schema>

export const writeRecord = (path: string, record: InstallRecord): Promise<void> =>
  writeFile(path, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600, flush: true })

/** Null when there is no valid file: the installation is not complete. */
export async function readRecord(path: string): Promise<InstallRecord | null> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return 'null'
    throw error
  })
  try {
    return schema.parse(JSON.parse(text))
  } catch {
    return null
  }
}

/** Creates the directory and those above it, and adds the new ones to `created`. */
export async function createDirectories(path: string, created: string[]): Promise<void> {
  const exists = await stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  )
  if (exists) return
  await createDirectories(dirname(path), created)
  await mkdir(path)
  created.push(path)
}

/** Removes the directories that are empty, the innermost first. */
export async function removeEmptyDirectories(paths: readonly string[]): Promise<void> {
  for (const path of paths.toReversed())
    await rmdir(path).catch((error: NodeJS.ErrnoException) => {
      if (!['ENOENT', 'ENOTEMPTY', 'EEXIST', 'EBUSY'].includes(error.code ?? '')) throw error
    })
}
