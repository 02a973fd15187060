// Unpacks the archive of a build: files and directories only, inside one directory.
import { mkdir, open, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { list, type ReadEntry } from 'tar'

/** Node has some 130 MB, and everything else 10 MB. */
const MAX_CONTENT_BYTES = 1024 * 1024 * 1024
const MAX_ENTRIES = 10_000
const MAX_PATH_LENGTH = 1024

export type UnpackLimits = { contentBytes: number; entries: number }

/**
 * Unpacks the archive. tar.extract() is not used, because it still writes files after it has failed.
 * @param dir an empty directory
 * @throws Error for an archive with another kind of entry, a path outside `dir`, or too much content. `dir` then has a part
 *   of the content.
 */
export async function unpack(
  archivePath: string,
  dir: string,
  limits: UnpackLimits = { contentBytes: MAX_CONTENT_BYTES, entries: MAX_ENTRIES },
): Promise<void> {
  /** Aborts when the rest of the archive cannot be read. */
  const parsing = new AbortController()
  const writes: Promise<void>[] = []
  const errors: unknown[] = []
  let contentBytes = 0
  const check = (entry: ReadEntry) => {
    contentBytes += entry.size
    if (writes.length >= limits.entries)
      throw new Error(`The archive has more than ${limits.entries} entries.`)
    if (contentBytes > limits.contentBytes)
      throw new Error(`The content of the archive has more than ${limits.contentBytes} bytes.`)
    assertPlain(entry)
  }
  const write = async (entry: ReadEntry) => {
    try {
      if (errors.length > 0) return
      check(entry)
      await writeEntry(entry, dir, parsing.signal)
    } catch (error) {
      errors.push(error)
    } finally {
      // The parser continues when the entry has been read.
      entry.resume()
    }
  }
  // strict: damage is an error, not a warning.
  const options = { file: archivePath, strict: true, noResume: true }
  await list({ ...options, onReadEntry: (entry) => void writes.push(write(entry)) }).catch((error) => {
    errors.unshift(error)
    parsing.abort()
  })
  await Promise.all(writes)
  if (errors.length > 0) throw errors[0]
  if (writes.length === 0) throw new Error('The archive is empty.')
}

async function writeEntry(entry: ReadEntry, dir: string, parsing: AbortSignal): Promise<void> {
  const path = join(dir, entry.path)
  if (entry.type === 'Directory') return void (await mkdir(path, { recursive: true }))
  await mkdir(dirname(path), { recursive: true })
  const mode = (entry.mode ?? 0) & 0o111 ? 0o755 : 0o644
  const handle = await open(path, 'wx', mode)
  const onAbort = () => entry.destroy(new Error('The archive is damaged.'))
  parsing.addEventListener('abort', onAbort)
  try {
    parsing.throwIfAborted()
    for await (const chunk of entry) await handle.writeFile(chunk)
    // The umask must not limit the mode: commands of other users run the programs of a build.
    await handle.chmod(mode)
  } finally {
    parsing.removeEventListener('abort', onAbort)
    await handle.close()
  }
}

function assertPlain({ type, path }: ReadEntry): void {
  if (type !== 'File' && type !== 'OldFile' && type !== 'Directory')
    throw new Error(`The archive has an entry of the type ${type}, which no build has.`)
  const isInside =
    path.length <= MAX_PATH_LENGTH &&
    !path.startsWith('/') &&
    !path.includes('\0') &&
    !path.split('/').includes('..')
  if (!isInside) throw new Error('The archive has a path outside its directory.')
}

/** Makes the content durable: after a power loss, a build with its final name is complete. */
export async function syncTree(dir: string): Promise<void> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  for (const path of [...entries.map((entry) => join(entry.parentPath, entry.name)), dir]) {
    const handle = await open(path, 'r')
    await handle.sync().finally(() => handle.close())
  }
}
