// Moves a value from a file of the data directory, where earlier versions stored it, into the database.
import { readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StartError } from '../base/start-error.ts'
import { syncDirectory } from '../base/sync-directory.ts'

export type FileTakeover = {
  /** The file of an earlier version, or of a restored backup of one. */
  path: string
  /** Returns the value. Throws StartError when the file is damaged. */
  parse(text: string): string
  /** Completes the message when the database has another value. */
  consequence: string
}

/**
 * Removes the file when the database has its value.
 * @param ensure returns the value of the database, and stores one when there is none: its argument, which is null without a file
 * @throws StartError when the database has another value: the file is not removed, because its value may be in use
 */
export async function takeOverFile(
  { path, parse, consequence }: FileTakeover,
  ensure: (value: string | null) => Promise<string>,
): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (text === null) return ensure(null)
  const value = parse(text)
  const stored = await ensure(value)
  if (stored !== value)
    throw new StartError(
      `${path} differs from the value in the database, which all coordinators of the database use. ${consequence} If the database is the right one, move the file away.`,
    )
  await rm(path)
  await syncDirectory(dirname(path))
  return stored
}
