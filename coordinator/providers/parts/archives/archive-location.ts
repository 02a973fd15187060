// The directories of the archive store: one per workspace.
import { existsSync, readdirSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ArchiveKey } from '../../provider.ts'
import { archivePath, type StoreDirs, storeDirs } from './store-files.ts'

export type ArchiveLocation = {
  workspaceDir: string
  archiveId: string
  dirs: StoreDirs
  /** The directory of the archive. */
  path: string
}

/** Ids become parts of paths that are removed recursively. */
export const ID_PATTERN = /^\w{1,64}$/

export function workspaceDirOf(storeDir: string, workspaceId: string): string {
  if (!ID_PATTERN.test(workspaceId)) throw new Error(`Not a workspace id: ${workspaceId}`)
  return join(storeDir, workspaceId)
}

export function locateArchive(storeDir: string, { workspaceId, archiveId }: ArchiveKey): ArchiveLocation {
  if (!ID_PATTERN.test(archiveId)) throw new Error(`Not an archive id: ${archiveId}`)
  const workspaceDir = workspaceDirOf(storeDir, workspaceId)
  const dirs = storeDirs(workspaceDir)
  return { workspaceDir, archiveId, dirs, path: archivePath(dirs, archiveId) }
}

export async function listWorkspaceIds(storeDir: string): Promise<string[]> {
  const names = existsSync(storeDir) ? await readdir(storeDir) : []
  return names.filter((name) => ID_PATTERN.test(name))
}

/**
 * Whether a coordinator was killed while it captured or removed archives: a capture has a temporary directory until it is
 * complete.
 */
export function hasGarbage(workspaceDir: string): boolean {
  const { temp, removed } = storeDirs(workspaceDir)
  return [temp, removed].some((path) => existsSync(path) && readdirSync(path).length > 0)
}
