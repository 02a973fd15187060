// Writes a source to this machine. A file or a new directory appears complete or not at all.

import { createWriteStream, type Stats } from 'node:fs'
import { chmod, open as openFile, rename, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { boxCommand } from '../command-name.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import type { Content, FileContent } from './content.ts'
import { openPipe } from './descriptors.ts'
import { extractDirectory } from './extract-directory.ts'
import { getRealPath, statIfExists, toLocalFileError, withTempPath } from './local-files.ts'
import { toFsPath } from './path-bytes.ts'
import type { Progress } from './progress.ts'
import { trackFile } from './track.ts'

type WriteContext = { progress: Progress; signal: AbortSignal }

/** Returns the path of the file or directory. @throws CliError */
export async function writeLocally(content: Content, target: string, context: WriteContext): Promise<string> {
  const { progress, signal } = context
  let to = target
  try {
    const targetStats = await statIfExists(target)
    const isInto = targetStats?.isDirectory() && content.name !== ''
    if (isInto) to = join(target, content.name)
    const existing = isInto ? await statIfExists(to) : targetStats
    await requireParent(to)
    if (content.type === 'directory') await extractDirectory(content.archive, to, existing, progress)
    else await saveFile(content, to, existing, context)
    return to
  } catch (error) {
    throw signal.aborted ? signal.reason : toLocalFileError(error, to)
  }
}

async function requireParent(path: string): Promise<void> {
  const parent = dirname(path)
  const stats = await statIfExists(parent)
  if (stats?.isDirectory()) return
  const problem =
    stats === null
      ? ': no such directory on this machine. --mkpath creates it.'
      : ' is not a directory on this machine.'
  throw new CliError(EXIT.notFound, `${sanitize(parent)}${problem}`)
}

async function saveFile(
  { mode, mtime, open }: FileContent,
  path: string,
  existing: Stats | null,
  { progress, signal }: WriteContext,
): Promise<void> {
  if (existing?.isDirectory())
    throw new CliError(
      EXIT.failed,
      `Cannot replace ${sanitize(path)} by a file: it is a directory on this machine. Choose another destination.`,
    )
  if (existing === null && path.endsWith('/'))
    throw new CliError(
      EXIT.notFound,
      `${sanitize(path)}: no such directory on this machine. --mkpath creates it.`,
    )
  const pipe = openPipe(path, 'write')
  if (pipe === null && existing?.isFIFO())
    throw new CliError(
      EXIT.failed,
      `${sanitize(path)}: not a regular file. To write to it, use - as the destination: ${boxCommand()} cp … - > ${sanitize(path)}`,
    )
  const openSource = async () => trackFile(await open(), progress)
  if (pipe !== null) return pipeline(await openSource(), pipe, { signal })
  // Write to a device; do not replace it by a file.
  if (existing !== null && !existing.isFile())
    return pipeline(await openSource(), createWriteStream(toFsPath(path)), { signal })
  const finalPath = existing === null ? path : await getRealPath(path)
  await withTempPath(dirname(finalPath), async (tempPath) => {
    // Not createWriteStream(), which creates the file later: also after its removal, when the source fails at once.
    const file = await openFile(toFsPath(tempPath), 'wx', 0o600)
    try {
      await pipeline(await openSource(), file.createWriteStream({ flush: true }), { signal })
    } finally {
      await file.close()
    }
    await chmod(
      toFsPath(tempPath),
      existing === null ? (mode ?? 0o666) & ~process.umask() : existing.mode & 0o7777,
    )
    if (mtime !== null) await utimes(toFsPath(tempPath), new Date(), mtime)
    await rename(toFsPath(tempPath), toFsPath(finalPath))
  })
}
