// The coordinator's data directory: its files, permissions and atomic writes.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { access, chmod, constants, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { findForeignControl } from '../../shared/foreign-directory.ts'
import { readHostId } from './host-id.ts'
import { formatBoxwoodName } from './project-directory.ts'
import { StartError } from './start-error.ts'

/** With absolute paths. */
export type DataDirectory = {
  dir: string
  /** The id of the host: boxes and snapshots whose files are in this directory have it in their rows. */
  host: string
  databaseFile: string
  /** Describes the Postgres database of the boxes in this directory. Absent: their database is `databaseFile`. */
  postgresFile: string
  /** See DiskReserve. */
  reserveFile: string
  /** The owner's API key, mode 0600. */
  ownerKeyFile: string
  /** The secret that signs in the owner, mode 0600. The file exists only while a coordinator runs. */
  signInKeyFile: string
  /** A CoordinatorRecord while a coordinator runs: the box command reads it to find a coordinator on this machine. */
  coordinatorFile: string
}

/** See DataDirectory.postgresFile. */
export const POSTGRES_FILE = 'postgres'

/** Exists in the data directory while a restore is not complete. */
export const RESTORE_DIR = 'restore-incomplete'

/**
 * Creates the directory if it does not exist, for its user only. New parent directories are as the user creates directories: users
 * of boxes may need to traverse them.
 * @returns whether it existed
 */
export async function createDataDirectory(dir: string): Promise<boolean> {
  await mkdir(dirname(dir), { recursive: true })
  return (await mkdir(dir, { recursive: true, mode: 0o700 })) === undefined
}

/** Creates the directory if needed and removes access for other users. Throws StartError, also for one of another user. */
export async function openDataDirectory(dir: string): Promise<DataDirectory> {
  const foreignControl = findForeignControl(dir, process.getuid?.() ?? 0)
  if (foreignControl !== null) throw new StartError(foreignControl)
  try {
    await createDataDirectory(dir)
    // When root runs the coordinator, each box has its own uid and may need to traverse the directory to its home.
    const executeBits = process.getuid?.() === 0 ? 0o011 : (await stat(dir)).mode & 0o011
    await chmod(dir, 0o700 | executeBits)
    await access(dir, constants.R_OK | constants.W_OK | constants.X_OK)
    if (existsSync(join(dir, RESTORE_DIR)))
      throw new StartError(
        `A restore into the data directory ${dir} was interrupted. Run \`${formatBoxwoodName()} restore\` again, which starts over.`,
      )
    const databaseFile = join(dir, 'boxwood.db')
    // SQLite creates its WAL and shared-memory files with the mode of this file.
    await (await open(databaseFile, 'a', 0o600)).close()
    return {
      dir,
      host: await readHostId(dir),
      databaseFile,
      postgresFile: join(dir, POSTGRES_FILE),
      reserveFile: join(dir, 'disk-reserve'),
      ownerKeyFile: getOwnerKeyFile(dir),
      signInKeyFile: join(dir, 'sign-in.key'),
      coordinatorFile: join(dir, 'coordinator.json'),
    }
  } catch (error) {
    if (error instanceof StartError) throw error
    const { message } = error as NodeJS.ErrnoException
    throw new StartError(
      `The data directory ${dir} cannot be used: ${message}. Set BOXWOOD_DATA to a directory that this user owns.`,
      { cause: error },
    )
  }
}

const getOwnerKeyFile = (dir: string): string => join(dir, 'owner.key')

/** Returns the owner's API key; '': the file does not exist. @param dir the data directory */
export async function readOwnerKey(dir: string): Promise<string> {
  try {
    return (await readFile(getOwnerKeyFile(dir), 'utf8')).trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

/** Replaces the file atomically and durably, with mode 0600. */
export async function writePrivateFile(file: string, text: string): Promise<void> {
  const tempFile = `${file}.${randomBytes(6).toString('hex')}.tmp`
  try {
    const handle = await open(tempFile, 'wx', 0o600)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(tempFile, file)
  } catch (error) {
    await rm(tempFile, { force: true })
    throw error
  }
}
