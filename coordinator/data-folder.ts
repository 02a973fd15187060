// The folder that holds everything this coordinator must remember.
import { randomBytes } from 'node:crypto'
import { access, chmod, constants, mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { StartError } from './start-error.ts'

export type DataFolder = {
  dir: string
  database: string
  /** The owner's API key, mode 0600. */
  ownerKey: string
  /** {url, pid} while a coordinator runs: how the box command on this machine finds it. */
  coordinator: string
}

/** Makes the folder if need be; nobody else may look into it. Throws StartError. */
export async function openDataFolder(dir: string): Promise<DataFolder> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 })
    // As root each box has a uid of its own, which may have to pass through on the way to its home.
    const passable = process.getuid?.() === 0 ? 0o011 : (await stat(dir)).mode & 0o011
    await chmod(dir, 0o700 | passable)
    await access(dir, constants.R_OK | constants.W_OK | constants.X_OK)
    const database = join(dir, 'boxwood.db')
    // SQLite gives its other files the mode of this one.
    await (await open(database, 'a', 0o600)).close()
    return {
      dir,
      database,
      ownerKey: join(dir, 'owner.key'),
      coordinator: join(dir, 'coordinator.json'),
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new StartError(
      `The data folder ${dir} cannot be used (${code ?? message}). Make it writable, or name another in BOXWOOD_DATA.`,
      { cause: error },
    )
  }
}

/** Replaces the file at once, durably, readable for its owner only. */
export async function writePrivately(file: string, text: string): Promise<void> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`
  try {
    const handle = await open(temporary, 'wx', 0o600)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}
