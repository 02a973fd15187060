// Removes chunks that no archive uses. Nothing may be added to the workspace meanwhile. Synchronous: used in worker threads.
import { existsSync, readdirSync, rmdirSync, rmSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import {
  CHUNK_LIST_FILE,
  chunkPath,
  DamagedArchiveError,
  readChunkList,
  type StoreDirs,
} from './store-files.ts'

/** Bounds the memory: names of chunks that are checked in one pass over the lists of all archives. */
const BATCH_SIZE = 500_000

/**
 * @param scope removed: the chunks of removed archives. all: every chunk, and the temporary files, after a coordinator that may
 * have been killed.
 */
export function collectChunks(dirs: StoreDirs, scope: 'all' | 'removed'): void {
  if (!existsSync(dirs.dir)) return
  const removed = list(dirs.removed)
  const names = scope === 'all' ? listChunks(dirs) : listRemovedChunks(dirs, removed)
  let batch = new Set<string>()
  for (const name of names) {
    batch.add(name)
    if (batch.size < BATCH_SIZE) continue
    removeUnused(dirs, batch)
    batch = new Set()
  }
  removeUnused(dirs, batch)
  for (const archiveId of removed) rmSync(join(dirs.removed, archiveId), { recursive: true, force: true })
  if (scope === 'all') {
    for (const name of list(dirs.temp)) rmSync(join(dirs.temp, name), { recursive: true, force: true })
  }
  if (list(dirs.archives).length > 0) return
  for (const prefix of list(dirs.chunks)) removeEmpty(join(dirs.chunks, prefix))
  for (const dir of [dirs.chunks, dirs.archives, dirs.removed, dirs.temp, dirs.dir]) removeEmpty(dir)
}

function removeUnused(dirs: StoreDirs, batch: Set<string>): void {
  for (const archiveId of list(dirs.archives)) {
    if (batch.size === 0) return
    for (const name of listChunksOf(dirs.archives, archiveId)) batch.delete(name)
  }
  for (const name of batch) {
    try {
      unlinkSync(chunkPath(dirs, name))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
}

function* listChunks({ chunks }: StoreDirs): Generator<string> {
  for (const prefix of list(chunks)) yield* list(join(chunks, prefix))
}

function* listRemovedChunks(dirs: StoreDirs, archiveIds: string[]): Generator<string> {
  for (const archiveId of archiveIds) yield* listChunksOf(dirs.removed, archiveId)
}

/** Stops where the list is damaged: the archive cannot be restored, so it needs no chunks. */
function* listChunksOf(dir: string, archiveId: string): Generator<string> {
  try {
    for (const { hash } of readChunkList(join(dir, archiveId, CHUNK_LIST_FILE))) yield hash
  } catch (error) {
    if (!(error instanceof DamagedArchiveError)) throw error
  }
}

const list = (dir: string): string[] => (existsSync(dir) ? readdirSync(dir) : [])

function removeEmpty(dir: string): void {
  try {
    rmdirSync(dir)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT' && code !== 'ENOTEMPTY') throw error
  }
}
