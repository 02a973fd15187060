// POST /files/mkdir, POST /files/move and DELETE /files: changes of directories.
import type { Stats } from 'node:fs'
import { lstat, mkdir, realpath, rename, rmdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type DirectoryCreated,
  type FileMoved,
  type FileRemoved,
  makeDirectoryRequestSchema,
  moveFileRequestSchema,
  removeFileQuerySchema,
} from '../../shared/api/files.ts'
import { ApiError } from '../../shared/errors.ts'
import { validateRequest } from '../validate-request.ts'
import type { FileDeps } from './deps.ts'
import { getSystemErrorCode, toFileError } from './errors.ts'
import { nullIfMissing, PATH_ERROR_CODES, resolveEntry, resolvePath } from './paths.ts'
import { removeTree } from './remove-tree.ts'
import { checkMovable, checkWritable } from './state-access.ts'

type ChangeDeps = Pick<FileDeps, 'home' | 'stateDir'>

/** Creates a directory with mode 0777 and the umask applied. */
export async function makeDirectory(
  body: unknown,
  { home, stateDir }: ChangeDeps,
): Promise<DirectoryCreated> {
  const request = validateRequest(makeDirectoryRequestSchema, body, { codes: PATH_ERROR_CODES })
  const requested = resolvePath(home, request.path)
  if (request.parents === true) return makeDirectories(requested, stateDir)
  // An existing directory may have a path without a name, such as /.
  const existing = await nullIfMissing(realpath(requested))
  if (existing !== null) throw createExistsError(existing)
  const path = await resolveEntry(requested)
  checkWritable(path, stateDir)
  await mkdir(path)
  return { ok: true, type: 'directory.created', path, created: true }
}

/** Resolves each directory of the path before the next one is created, so that no symbolic link leads into the state. */
async function makeDirectories(requested: string, stateDir: string): Promise<DirectoryCreated> {
  let path = '/'
  let created = false
  for (const name of requested.split('/')) {
    const next = join(path, name)
    const real = await nullIfMissing(realpath(next))
    if (real === null) {
      checkWritable(next, stateDir)
      created = await createUnlessExists(next)
    }
    path = real ?? (await realpath(next))
  }
  if (!(await stat(path)).isDirectory()) throw createExistsError(path)
  return { ok: true, type: 'directory.created', path, created }
}

/** false: another program has created the directory meanwhile. */
async function createUnlessExists(path: string): Promise<boolean> {
  try {
    await mkdir(path)
    return true
  } catch (error) {
    // Of a symbolic link without a target, the real path is missing still.
    if (getSystemErrorCode(error) !== 'EEXIST' || (await nullIfMissing(stat(path))) === null) throw error
    return false
  }
}

/** Renames an entry. Symbolic links at the end of both paths are entries, which are not followed. */
export async function moveEntry(body: unknown, deps: ChangeDeps): Promise<FileMoved> {
  const request = validateRequest(moveFileRequestSchema, body, { codes: PATH_ERROR_CODES })
  const from = await resolveMovable(resolvePath(deps.home, request.from), deps)
  const source = await lstat(from)
  const to = await resolveEntry(resolvePath(deps.home, request.to))
  checkWritable(to, deps.stateDir)
  if (to.startsWith(`${from}/`))
    throw new ApiError('invalid_path', `${to} is inside ${from}, which cannot be moved into itself.`)
  try {
    const old = await nullIfMissing(lstat(to))
    if (old !== null) {
      if (request.overwrite !== true) throw createExistsError(to)
      if (old.isDirectory()) checkMovable(to, await getProtected(deps))
      checkReplaceable(source, old, to)
    }
    // rename() does nothing when both are names of one file.
    if (old !== null && from !== to && isSameFile(source, old)) await unlink(from)
    else await rename(from, to)
  } catch (error) {
    if (getSystemErrorCode(error) === 'EXDEV')
      throw new ApiError(
        'invalid_path',
        `${from} and ${to} are on different file systems. Copy it with \`cp -a\` on the box, then remove it.`,
      )
    throw toFileError(error, to)
  }
  return { ok: true, type: 'file.moved', from, path: to }
}

/** Removes an entry. A symbolic link is removed, and its target is not. */
export async function removeEntry(
  query: unknown,
  deps: ChangeDeps,
  signal: AbortSignal,
): Promise<FileRemoved> {
  const request = validateRequest(removeFileQuerySchema, query, { root: 'query', codes: PATH_ERROR_CODES })
  const path = await resolveMovable(resolvePath(deps.home, request.path), deps)
  const stats = await lstat(path)
  if (!stats.isDirectory()) await unlink(path)
  else if (request.recursive === true) await removeTree(path, deps.stateDir, signal)
  else await removeEmpty(path)
  return { ok: true, type: 'file.removed', path }
}

async function removeEmpty(path: string): Promise<void> {
  await rmdir(path).catch((error) => {
    const code = getSystemErrorCode(error)
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
    throw new ApiError(
      'directory_not_empty',
      `${path} is not empty. Send recursive=1 to remove it with its content.`,
    )
  })
}

async function resolveMovable(requested: string, deps: ChangeDeps): Promise<string> {
  const kept = await getProtected(deps)
  // The root, and the path of a directory that ends in /, . or ..
  if (/(^|\/)\.{0,2}$/.test(requested)) checkMovable(await realpath(requested), kept)
  const path = await resolveEntry(requested)
  checkMovable(path, kept)
  if (requested.endsWith('/') && !(await lstat(path)).isDirectory())
    throw new ApiError('not_found', `${requested} is not a directory.`)
  return path
}

/** The real paths of the directories that are neither moved nor removed. */
const getProtected = async ({ home, stateDir }: ChangeDeps) => ({
  stateDir,
  home: (await nullIfMissing(realpath(home))) ?? home,
})

function checkReplaceable(source: Stats, old: Stats, to: string): void {
  if (source.isDirectory() === old.isDirectory()) return
  throw new ApiError(
    'path_exists',
    old.isDirectory()
      ? `${to} is a directory, which a file cannot replace. Add the name of the file.`
      : `${to} is not a directory. A directory cannot replace it: remove it first.`,
  )
}

const isSameFile = (a: Stats, b: Stats): boolean => a.dev === b.dev && a.ino === b.ino

const createExistsError = (path: string): ApiError =>
  new ApiError('path_exists', `${path} exists already. Choose another path, or remove it first.`)
