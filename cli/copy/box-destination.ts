// Writes a source to a box: PUT /upload for a file of up to 1 GiB, else a command on the box that reads stdin.
import { basename } from 'node:path'
import { readText } from '../../client/http/calls.ts'
import type { FileUploaded } from '../../shared/api/files.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { EdgeClient } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { type CommandContext, NOT_A_DIRECTORY, runOnBox, runWithInput } from './box-command.ts'
import { toBoxError } from './box-errors.ts'
import { createMkdirScript, createUnpackScript, createWriteScript } from './box-scripts.ts'
import type { Content, DirectoryContent, FileContent } from './content.ts'
import { getParent, isDirectoryPath, isRequestPath, joinPath } from './paths.ts'
import { trackArchive, trackFile } from './track.ts'

export type BoxTarget = CommandContext & {
  path: string
  /** The destination must be an existing directory. */
  mustBeDirectory: boolean
  /** The first line of the commands in the history of the box. */
  title: string
}

/** Returns the real path of the file or directory. @throws CliError */
export const writeToBox = (target: BoxTarget, content: Content): Promise<string> =>
  content.type === 'directory' ? unpack(target, content) : writeFile(target, content)

export async function createBoxDirectory(edge: EdgeClient, title: string, path: string): Promise<void> {
  await runOnBox(edge, createMkdirScript(title, path))
}

async function unpack(target: BoxTarget, content: DirectoryContent): Promise<string> {
  const script = createUnpackScript(target.title, target.path, content, target.mustBeDirectory)
  const stdout = await runWithInput(target, script, trackArchive(content.archive, target.progress))
  return stdout.replace(/\n$/, '')
}

async function writeFile(target: BoxTarget, content: FileContent): Promise<string> {
  const { path, mustBeDirectory } = target
  const inDirectory = joinPath(path, content.name)
  if (content.size === null || content.size > LIMITS.transferBytes || !isRequestPath(inDirectory))
    return writeStream(target, content)
  if (mustBeDirectory || isDirectoryPath(path)) return upload(target, inDirectory, content, content.size)
  try {
    return await upload(target, path, content, content.size)
  } catch (error) {
    // invalid_path: `path` is a directory. Then the file goes into it, as for cp.
    if (!(error instanceof CliError) || error.code !== 'invalid_path') throw error
    return upload(target, inDirectory, content, content.size)
  }
}

async function writeStream(target: BoxTarget, content: FileContent): Promise<string> {
  const { path, mustBeDirectory, title, progress } = target
  const destination = mustBeDirectory || isDirectoryPath(path) ? joinPath(path, content.name) : path
  const stream = await content.open()
  try {
    const input = trackFile(stream, progress)
    return (await runWithInput(target, createWriteScript(title, destination, content), input)).replace(
      /\n$/,
      '',
    )
  } finally {
    stream.destroy()
  }
}

async function upload(
  { edge, progress }: BoxTarget,
  path: string,
  { mode, mtime, open }: FileContent,
  length: number,
): Promise<string> {
  const query = {
    path,
    ...(mode !== null && { mode: mode.toString(8).padStart(4, '0') }),
    ...(mtime !== null && { mtime: (Math.max(0, Math.floor(mtime * 1000)) / 1000).toString() }),
  }
  const createBody = async () => {
    const stream = await open()
    if (length > 0) return trackFile(stream, progress)
    stream.destroy()
    progress.addFile()
    return ''
  }
  try {
    const response = await edge.send('PUT', '/upload', query, createBody, {
      'content-length': String(length),
    })
    return (JSON.parse(await readText(response)) as FileUploaded).path
  } catch (error) {
    if (error instanceof CliError && error.code === 'not_found') throw await createParentError(edge, path)
    throw toBoxError(edge, error)
  }
}

/** For PUT /upload, not_found means that the parent of `path` does not exist on the box, or is not a directory. */
async function createParentError(edge: EdgeClient, path: string): Promise<CliError> {
  const parent = sanitize(getParent(path))
  const boxName = sanitize(edge.boxName)
  const exists = await edge.send('HEAD', '/download', { path: getParent(path) || '~' }).then(
    () => true,
    () => false,
  )
  const problem = exists ? `${parent} is not a directory.` : `the directory ${parent} does not exist.`
  const example = sanitize(`${edge.boxName}:${basename(path)}`)
  const advice = path.startsWith('/')
    ? ` Boxes write below their home directory and /tmp: use a path without a leading slash, such as ${example}. Below these directories, --mkpath creates it.`
    : exists
      ? ''
      : ' --mkpath creates it.'
  return new CliError(EXIT.notFound, `${boxName}: ${problem}${advice}`, { code: NOT_A_DIRECTORY })
}
