// The file of the master keys: master-keys in the data directory, or a file that the operator provides.
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { writePrivateFile } from '../data-directory.ts'
import { StartError } from '../start-error.ts'
import { syncDirectory } from '../sync-directory.ts'
import { type MasterKey, type MasterKeys, newMasterKey, parseKeyFile } from './master-key.ts'

/** The name of the file in the data directory. */
export const MASTER_KEYS_FILE = 'master-keys'

export type KeyFile = {
  /** An absolute path. */
  path: string
  /** The operator provides the file, which is never created or written. */
  isMounted: boolean
}

const MAX_FILE_BYTES = 64 * 1024

export const locateKeyFile = (config: { dataDir: string; masterKeysFile: string | null }): KeyFile =>
  config.masterKeysFile === null
    ? { path: join(config.dataDir, MASTER_KEYS_FILE), isMounted: false }
    : { path: config.masterKeysFile, isMounted: true }

/**
 * @returns null: the file does not exist
 * @throws StartError when other users may use the file, or it has no valid keys
 */
export async function readKeyFile(file: KeyFile): Promise<{ text: string; keys: MasterKeys } | null> {
  const text = await readPrivateText(file)
  if (text === null) return null
  const parsed = parseKeyFile(text)
  if ('problem' in parsed)
    throw new StartError(`The file of the master keys ${file.path} is not valid: ${parsed.problem}.`)
  return { text, keys: parsed.keys }
}

async function readPrivateText({ path, isMounted }: KeyFile): Promise<string | null> {
  // O_NONBLOCK: the open of a named pipe would wait for a writer.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null
      throw new StartError(`The file of the master keys ${path} cannot be read: ${error.message}.`)
    },
  )
  if (handle === null) return null
  try {
    const { mode, uid, size } = await handle.stat()
    // Platforms that mount secrets let a group read them.
    if ((mode & (isMounted ? 0o037 : 0o077)) !== 0)
      throw new StartError(
        `The file of the master keys ${path} has mode ${formatMode(mode)}, with which other users may use it. Set its mode to 0600. Replace the keys if others have read it: \`box docs master-keys\`.`,
      )
    if (uid !== process.getuid?.() && uid !== 0)
      throw new StartError(
        `The file of the master keys ${path} belongs to the user ${uid}. It must belong to the user of the coordinator.`,
      )
    if (size > MAX_FILE_BYTES)
      throw new StartError(`The file of the master keys ${path} is larger than ${MAX_FILE_BYTES} bytes.`)
    return await handle.readFile('utf8')
  } finally {
    await handle.close()
  }
}

const formatMode = (mode: number): string => (mode & 0o777).toString(8).padStart(4, '0')

/** Creates a key in memory, which store() writes to the file. */
export function createMasterKey({ path }: KeyFile): { key: MasterKey; store(): Promise<void> } {
  const { line, ...key } = newMasterKey()
  return { key, store: () => writeKeyFile(path, `${line}\n`) }
}

/** Adds a new key before the others. @param text the content of the file. Returns the id of the key. */
export async function addMasterKey({ path }: KeyFile, text: string): Promise<string> {
  const { id, line } = newMasterKey()
  await writeKeyFile(path, `${line}\n${text}`)
  return id
}

/** Replaces the file. A key must be on disk before a value is encrypted with it. */
async function writeKeyFile(path: string, text: string): Promise<void> {
  await writePrivateFile(path, text)
  await syncDirectory(dirname(path))
}
