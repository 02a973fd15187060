// Reads the spool of a box from the disk. The box controls these files, and may replace them while they are read: each is
// opened relative to its directory, links are not followed, and only regular files of the box's user are read.
import { constants } from 'node:fs'
import { type FileHandle, open, opendir } from 'node:fs/promises'
import { TUNNEL_LIMITS } from '../../../shared/limits.ts'
import {
  parseSegmentName,
  SPOOL_BYTES,
  SPOOL_DIRECTORY,
  SPOOL_SEGMENT_BYTES,
} from '../../../shared/report-spool.ts'

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
export const MAX_SEGMENT_BYTES = SPOOL_SEGMENT_BYTES + TUNNEL_LIMITS.reportBytes
/** The last segment, and an acknowledged one that the agent has not removed yet, do not count for the size of the spool. */
export const MAX_SPOOL_BYTES = SPOOL_BYTES + 2 * MAX_SEGMENT_BYTES
/** The spool has some 70 files. */
export const MAX_SPOOL_ENTRIES = 1000

/** Called for what is not read. */
export type OnSkip = (path: string, problem: string) => void

/**
 * Yields the content of the segments in the order of their names, of each at most the size that the agent writes.
 * @param stateDir the state directory of the box. The box can change what it contains, but not replace it.
 */
export async function* readSpool(stateDir: string, onSkip: OnSkip): AsyncGenerator<Buffer, void, undefined> {
  await using state = await openEntry(stateDir, O_DIRECTORY, onSkip)
  if (state === null) return
  const { uid } = await state.stat()
  await using spool = await openEntry(getEntryPath(state, SPOOL_DIRECTORY), O_DIRECTORY, onSkip)
  if (spool === null) return
  let remainingBytes = MAX_SPOOL_BYTES
  for (const name of await listSegments(spool, onSkip)) {
    await using file = await openEntry(getEntryPath(spool, name), 0, onSkip)
    if (file === null) continue
    const stats = await file.stat()
    if (!stats.isFile() || stats.uid !== uid) {
      onSkip(name, 'not a regular file of the user of the box')
      continue
    }
    const size = Math.min(stats.size, MAX_SEGMENT_BYTES)
    remainingBytes -= size
    if (remainingBytes < 0) return onSkip(name, `the spool is larger than ${MAX_SPOOL_BYTES} bytes`)
    yield await readStart(file, size)
  }
}

/** The path of an entry of an open directory, whatever the path of the directory names now. */
const getEntryPath = (directory: FileHandle, name: string): string => `/proc/self/fd/${directory.fd}/${name}`

/** Returns null when the entry does not exist or cannot be opened: it is a link, or the box has changed its mode. */
async function openEntry(path: string, flags: number, onSkip: OnSkip): Promise<FileHandle | null> {
  try {
    // Without O_NONBLOCK the open of a FIFO waits for a writer.
    return await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | flags)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') onSkip(path, (error as Error).message)
    return null
  }
}

async function listSegments(directory: FileHandle, onSkip: OnSkip): Promise<string[]> {
  const names: string[] = []
  let count = 0
  for await (const { name } of await opendir(`/proc/self/fd/${directory.fd}`)) {
    count += 1
    if (count > MAX_SPOOL_ENTRIES) {
      onSkip(SPOOL_DIRECTORY, `the directory has more than ${MAX_SPOOL_ENTRIES} entries`)
      break
    }
    if (parseSegmentName(name) !== null) names.push(name)
  }
  return names.sort()
}

/** Returns less than `size` bytes when the file was truncated meanwhile. */
async function readStart(file: FileHandle, size: number): Promise<Buffer> {
  const buffer = Buffer.alloc(size)
  let length = 0
  while (length < size) {
    const { bytesRead } = await file.read(buffer, length, size - length, length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return buffer.subarray(0, length)
}
