// Lists the files of an archive, for a backup of the archive store.
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { readManifest } from './manifest.ts'
import {
  archivePath,
  CHUNK_LIST_FILE,
  chunkPath,
  MANIFEST_FILE,
  readChunkList,
  storeDirs,
  verifyChunkList,
} from './store-files.ts'

/** `name` is the path in the store after a restore. */
export type StoredFile = { name: string; path: string }

/**
 * Yields the chunks and then the files of the archive. Also finds an archive that is removed while the store is held.
 * @param dir the store @param listed the chunks that are not yielded again
 * @throws DamagedArchiveError
 */
export function* listArchiveFiles(
  dir: string,
  { workspaceId, archiveId }: { workspaceId: string; archiveId: string },
  listed: Set<string>,
): Generator<StoredFile> {
  const dirs = storeDirs(join(dir, workspaceId))
  const target = archivePath(dirs, archiveId)
  const source = existsSync(target) ? target : join(dirs.removed, archiveId)
  verifyChunkList(source, readManifest(source))
  for (const { hash } of readChunkList(join(source, CHUNK_LIST_FILE))) {
    const path = chunkPath(dirs, hash)
    if (listed.has(path)) continue
    listed.add(path)
    yield { name: relative(dir, path), path }
  }
  for (const file of [CHUNK_LIST_FILE, MANIFEST_FILE])
    yield { name: relative(dir, join(target, file)), path: join(source, file) }
}
