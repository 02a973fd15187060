// Helpers for tests of the archive store: trees of boxes, and a store in a temporary directory.
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import {
  type ArchivesOptions,
  createArchives,
} from '../../../../../coordinator/providers/parts/archives/archives.ts'
import type { BoxFiles } from '../../../../../coordinator/providers/parts/archives/tar.ts'
import { createTempDir } from '../../../../support/temp-dir.ts'

export const isRoot = process.getuid?.() === 0

/** Users of the box range. A test that does not run as root has only its own user. */
export const BOX_UIDS = isRoot ? ([1_900_000_101, 1_900_000_102] as const) : ([null, null] as const)

export const ROOTS = ['home', 'tmp', 'var-tmp'] as const

export const archiveKey = (name: string, workspaceId = 'ws_1') => ({ workspaceId, archiveId: `snp_${name}` })

export function openArchives(t: Test, options: Partial<ArchivesOptions> = {}) {
  const dir = options.dir ?? join(createTempDir(t, 'archives'), 'archives')
  const archives = createArchives({
    dir,
    log: { warn: (fields, message) => t.comment(message, fields) },
    reserveBytes: 0,
    ...options,
  })
  t.teardown(() => archives.close())
  return { archives, dir }
}

/** An empty box directory of the user. */
export function createBoxFiles(
  t: Test,
  uid: number | null = BOX_UIDS[0],
  dir = createTempDir(t, 'box'),
): BoxFiles & { home: string } {
  // Also entries without permissions, and with paths longer than PATH_MAX.
  t.teardown(() => spawnSync('/bin/sh', ['-c', 'chmod -R u+rwX . && rm -rf ./*'], { cwd: dir }))
  chmodSync(dir, 0o711)
  for (const root of ROOTS) {
    mkdirSync(join(dir, root), { mode: 0o700 })
    if (uid !== null) chownSync(join(dir, root), uid, uid)
  }
  return { dir, roots: ROOTS, uid, home: join(dir, 'home') }
}

export function changeOwner({ dir, uid }: BoxFiles): void {
  if (uid === null) return
  execFileSync('chown', ['-hRP', `${uid}:${uid}`, ...ROOTS.map((root) => join(dir, root))])
}

/** Waits until the socket exists. tar does not archive sockets. */
export async function createSocket(t: Test, path: string): Promise<void> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(path, resolve))
  t.teardown(() => server.close())
}

/** All files of the store. Reads them again when a directory was removed meanwhile. */
export async function listStore(dir: string): Promise<string[]> {
  try {
    return (await readdir(dir, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .sort()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return listStore(dir)
    throw error
  }
}
