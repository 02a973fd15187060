// Removes a directory with its content. Each directory is opened without following a symbolic link, and its entries are
// removed relative to its descriptor: a program that exchanges directories meanwhile cannot lead the removal elsewhere.
import { constants } from 'node:fs'
import { type FileHandle, open, rmdir, stat, unlink } from 'node:fs/promises'
import { ApiError } from '../../shared/errors.ts'
import { getSystemErrorCode, toFileError } from './errors.ts'
import { joinPath, nullIfMissing } from './paths.ts'
import { assertNotCancelled, readNames } from './read-names.ts'

/** Entries that are read before they are removed. Bounds the memory. */
const READ_ENTRIES = 1024
/** How many entries are removed concurrently. */
const BATCH_SIZE = 32
/** Each level needs an open descriptor. A path of 4096 bytes, which is the longest one, has at most 2048 levels. */
const MAX_DEPTH = 2048

type Removal = { isState(stats: { dev: number; ino: number }): boolean; signal: AbortSignal }

/** `path` is for the calls, `shown` for messages: the path below the directory that is removed. */
type Directory = { path: Buffer; shown: Buffer; depth: number }

/**
 * @param path a real path
 * @param stateDir the agent's state directory, which is not removed, even when it is moved into the tree meanwhile
 * @throws ApiError that names the entry that cannot be removed. Other entries may have been removed.
 */
export async function removeTree(path: string, stateDir: string, signal: AbortSignal): Promise<void> {
  const state = await nullIfMissing(stat(stateDir))
  const isState: Removal['isState'] = ({ dev, ino }) => state?.dev === dev && state.ino === ino
  const bytes = Buffer.from(path)
  await removeDirectory({ path: bytes, shown: bytes, depth: 0 }, { isState, signal })
}

async function removeDirectory(directory: Directory, removal: Removal): Promise<void> {
  const { path, shown } = directory
  try {
    const handle = await openDirectory(path)
    if (handle !== null) await removeContent(handle, directory, removal).finally(() => handle.close())
    await nullIfMissing(rmdir(path))
  } catch (error) {
    throw toFileError(error, shown.toString())
  }
}

/** null: the directory is missing, or is removed. An unreadable directory can be removed when it is empty. */
async function openDirectory(path: Buffer): Promise<FileHandle | null> {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants
  try {
    return await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  } catch (error) {
    const code = getSystemErrorCode(error)
    if (code === 'ENOENT') return null
    if (code !== 'EACCES') throw error
    await rmdir(path).catch(() => {
      throw error
    })
    return null
  }
}

async function removeContent(
  handle: FileHandle,
  { shown, depth }: Directory,
  removal: Removal,
): Promise<void> {
  if (removal.isState(await handle.stat()))
    throw new ApiError('permission_denied', `${shown} belongs to the agent.`)
  if (depth >= MAX_DEPTH)
    throw new ApiError('exec_failed', `${shown.subarray(0, 200)}… has more than ${MAX_DEPTH} levels.`)
  const base = Buffer.from(`/proc/self/fd/${handle.fd}`)
  for (;;) {
    const names = await readSomeNames(base)
    if (names.length === 0) return
    for (let index = 0; index < names.length; index += BATCH_SIZE) {
      assertNotCancelled(removal.signal)
      const batch = names.slice(index, index + BATCH_SIZE).map((name) => ({
        path: joinPath(base, name),
        shown: joinPath(shown, name),
        depth: depth + 1,
      }))
      const directories = await Promise.all(batch.map(unlinkUnlessDirectory))
      for (const directory of directories) if (directory !== null) await removeDirectory(directory, removal)
    }
  }
}

/** Returns a directory, and removes anything else. */
async function unlinkUnlessDirectory(entry: Directory): Promise<Directory | null> {
  try {
    await nullIfMissing(unlink(entry.path))
    return null
  } catch (error) {
    if (getSystemErrorCode(error) === 'EISDIR') return entry
    throw toFileError(error, entry.shown.toString())
  }
}

/** Some names of the directory; none: it is empty. */
async function readSomeNames(path: Buffer): Promise<Buffer[]> {
  const names: Buffer[] = []
  for await (const name of readNames(path)) {
    names.push(name)
    if (names.length >= READ_ENTRIES) break
  }
  return names
}
