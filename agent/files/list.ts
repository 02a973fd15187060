// GET /files/list and GET /files/stat: the entries of a directory in pages, and one entry.
import { realpath, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import {
  type FileEntry,
  type FileList,
  type FileStat,
  listFilesQuerySchema,
  pathQuerySchema,
} from '../../shared/api/files.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { validateRequest } from '../validate-request.ts'
import { checkNoCredential } from './credential-files.ts'
import type { FileDeps } from './deps.ts'
import { describeEntry, type OwnerNames } from './entry.ts'
import { joinPath, nullIfMissing, PATH_ERROR_CODES, resolveEntry, resolvePath } from './paths.ts'
import type { ReadLimits } from './read.ts'
import { assertNotCancelled, readNames } from './read-names.ts'
import { SmallestNames } from './smallest-names.ts'
import { checkReadable } from './state-access.ts'
import { isTempFileName } from './temp-file.ts'

export type ListDeps = Pick<FileDeps, 'home'> & { limits: ReadLimits; readOwnerNames(): OwnerNames }

/** How many entries are inspected concurrently. */
const BATCH_SIZE = 32

/**
 * Lists a page of a directory. Each page reads the names of the whole directory, and keeps at most twice as many as the
 * page has, so the memory does not depend on the size of the directory.
 */
export async function listDirectory(query: unknown, deps: ListDeps, signal: AbortSignal): Promise<FileList> {
  const request = validateRequest(listFilesQuerySchema, query, { root: 'query', codes: PATH_ERROR_CODES })
  const { limit = LIMITS.filePage.default, cursor } = request
  const path = await realpath(resolvePath(deps.home, request.path))
  await checkListable(path, deps.limits)
  if (!(await stat(path)).isDirectory())
    throw new ApiError('invalid_path', `${path} is not a directory. Use GET /files/stat.`)
  const after = cursor === undefined ? null : Buffer.from(cursor, 'base64url')
  const names = await readSmallestNames(path, after, limit + 1, signal)
  const page = names.slice(0, limit)
  const last = page.at(-1)
  return {
    ok: true,
    type: 'file.list',
    path,
    entries: await describeEntries(path, page, deps.readOwnerNames()),
    nextCursor: names.length > limit && last !== undefined ? last.toString('base64url') : null,
  }
}

/** Describes an entry without following a symbolic link. */
export async function statEntry(query: unknown, deps: ListDeps): Promise<FileStat> {
  const request = validateRequest(pathQuerySchema, query, { root: 'query', codes: PATH_ERROR_CODES })
  const requested = resolvePath(deps.home, request.path)
  // A path that ends in `/`, `.` or `..` leads to a directory, also through a symbolic link.
  const path = /(^|\/)\.{0,2}$/.test(requested) ? await realpath(requested) : await resolveEntry(requested)
  await checkListable(path, deps.limits)
  const name = Buffer.from(basename(path) || '/')
  const entry = await describeEntry(Buffer.from(path), name, deps.readOwnerNames())
  if (requested.endsWith('/') && entry.type !== 'directory')
    throw new ApiError('not_found', `${requested} is not a directory.`)
  return { ok: true, type: 'file.stat', path, entry }
}

/** The names and sizes of the files of processes are no secrets. */
async function checkListable(path: string, { stateDir, credentials }: ReadLimits): Promise<void> {
  checkReadable(path, stateDir)
  if (credentials !== null) await checkNoCredential(path, undefined, credentials)
}

/** The first `count` names after `after`, sorted by their bytes. */
async function readSmallestNames(
  path: string,
  after: Buffer | null,
  count: number,
  signal: AbortSignal,
): Promise<readonly Buffer[]> {
  const names = new SmallestNames(count, after)
  for await (const name of readNames(Buffer.from(path))) {
    assertNotCancelled(signal)
    if (!isTempFileName(name.toString('latin1'))) names.add(name)
  }
  return names.toSorted()
}

/** Entries that are removed meanwhile are omitted. */
async function describeEntries(
  path: string,
  names: readonly Buffer[],
  ownerNames: OwnerNames,
): Promise<FileEntry[]> {
  const entries: FileEntry[] = []
  const directory = Buffer.from(path)
  for (let index = 0; index < names.length; index += BATCH_SIZE) {
    const batch = names
      .slice(index, index + BATCH_SIZE)
      .map((name) => nullIfMissing(describeEntry(joinPath(directory, name), name, ownerNames)))
    for (const entry of await Promise.all(batch)) if (entry !== null) entries.push(entry)
  }
  return entries
}
