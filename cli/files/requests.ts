// Requests to the routes of directories of a box.
import type { DirectoryCreated, FileEntry, FileList, FileMoved, FileStat } from '../../shared/api/files.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { EdgeClient } from '../connection/client.ts'
import { CliError } from '../output/exit-codes.ts'

const toQuery = (values: Record<string, string>): string => String(new URLSearchParams(values))

/** `isComplete`: the directory has no further entries. */
export type Listing = { path: string; entries: FileEntry[]; isComplete: boolean }

/** Lists the first `limit` entries of a directory, or the entry itself of a path that is not a directory. */
export async function listEntries(edge: EdgeClient, path: string, limit: number): Promise<Listing> {
  const entries: FileEntry[] = []
  for (let cursor: string | null = null; ; ) {
    const count = Math.min(limit - entries.length, LIMITS.filePage.max)
    const query = { path, limit: String(count), ...(cursor !== null && { cursor }) }
    const page: FileList = await edge
      .requestJson<FileList>('GET', `/files/list?${toQuery(query)}`)
      .catch((error) => listEntry(edge, path, error))
    entries.push(...page.entries)
    cursor = page.nextCursor
    if (cursor === null || entries.length >= limit)
      return { path: page.path, entries, isComplete: cursor === null }
  }
}

/** @throws `error` when the path is not that of an entry either */
async function listEntry(edge: EdgeClient, path: string, error: unknown): Promise<FileList> {
  if (!(error instanceof CliError) || error.code !== 'invalid_path') throw error
  const { path: realPath, entry } = await statEntry(edge, path).catch(() => {
    throw error
  })
  return { ok: true, type: 'file.list', path: realPath, entries: [entry], nextCursor: null }
}

export const statEntry = (edge: EdgeClient, path: string): Promise<FileStat> =>
  edge.requestJson('GET', `/files/stat?${toQuery({ path })}`)

export const makeDirectory = (edge: EdgeClient, path: string, parents: boolean): Promise<DirectoryCreated> =>
  edge.requestJson('POST', '/files/mkdir', { path, parents })

/** @throws CliError `path_exists` */
export const moveEntry = (
  edge: EdgeClient,
  body: { from: string; to: string; overwrite: boolean },
): Promise<FileMoved> => edge.requestJson('POST', '/files/move', body)

export const removeEntry = (
  edge: EdgeClient,
  path: string,
  isRecursive: boolean,
): Promise<{ path: string }> =>
  edge.requestJson('DELETE', `/files?${toQuery({ path, ...(isRecursive && { recursive: '1' }) })}`)

/** True also for a symbolic link to a directory. */
export async function isDirectory(edge: EdgeClient, path: string): Promise<boolean> {
  try {
    const { entry } = await statEntry(edge, path)
    return (entry.targetType ?? entry.type) === 'directory'
  } catch (error) {
    if (error instanceof CliError && error.code === 'not_found') return false
    throw error
  }
}
