// Helpers for tests of the archive store: trees of boxes, and a store in a temporary directory.
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  closeSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { readdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import {
  type ArchivesOptions,
  createArchives,
} from '../../../../../coordinator/providers/local/archives/archives.ts'
import type { BoxFiles } from '../../../../../coordinator/providers/local/archives/tar.ts'
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

/** Entries of every kind that a box can create, except sockets. */
export function createOddTree(files: BoxFiles & { home: string }): void {
  const { home } = files
  const inHome = (name: string) => join(home, name)
  const withBytes = (name: string) => Buffer.from(`${home}/${name}`, 'latin1')
  const write = (path: string | Buffer, text = '') => writeFileSync(path, text)
  write(inHome('file'), 'text')
  for (const name of ['.hidden', '*', '--checkpoint-action=exec=false', 'ü'.repeat(127)]) write(inHome(name))
  write(withBytes('invalid \xff\xfe utf-8'), 'bytes')
  write(withBytes('new\nline \t tab \\ backslash'))
  mkdirSync(inHome('empty'))
  mkdirSync(inHome(`${'directory/'.repeat(100)}${'n'.repeat(255)}`), { recursive: true })
  mkdirSync(inHome('other'))
  for (const name of ['hard-link', 'other/hard-link']) linkSync(inHome('file'), inHome(name))
  for (const [name, target] of [
    ['symlink', 'file'],
    ['absolute-symlink', '/etc/passwd'],
    ['parent-symlink', '../../..'],
    ['dangling-symlink', 'missing\n'],
    ['long-symlink', 'x'.repeat(4000)],
  ] as const)
    symlinkSync(target, inHome(name))
  linkSync(inHome('absolute-symlink'), inHome('other/hard-link-of-symlink'))
  execFileSync('mkfifo', [inHome('fifo')])
  const sparse = openSync(inHome('sparse'), 'w')
  writeSync(sparse, 'start')
  writeSync(sparse, 'middle', 5 * 1024 * 1024)
  ftruncateSync(sparse, 64 * 1024 * 1024)
  closeSync(sparse)
  for (const name of ['user.plain', 'user.odd=name'])
    spawnSync('setfattr', ['-n', name, '-v', '0x00ff0a', inHome('file'), inHome('empty')])
  spawnSync('setfacl', ['-m', 'g::rx,m::rx,d:u::rwx,d:g::r,d:o::-', inHome('other')])

  const modes = { 'read-only': 0o444, 'no-permissions': 0, executable: 0o755, 'set-ids': 0o6755 }
  for (const name of Object.keys(modes)) write(inHome(name), name)
  const directoryModes = { locked: 0, 'locked/inner': 0o500, sticky: 0o1777, 'set-gid': 0o2775 }
  for (const name of Object.keys(directoryModes)) mkdirSync(inHome(name))
  changeOwner(files)
  // chown removes special bits.
  for (const [name, mode] of Object.entries({ ...modes, ...directoryModes }).reverse())
    chmodSync(inHome(name), mode)
  execFileSync('touch', ['-h', '-d', '@-5.000000001', inHome('absolute-symlink')])
  execFileSync('touch', ['-d', '@4102444800', inHome('fifo'), inHome('sticky')])
  execFileSync('touch', ['-d', '@1234567890.123456789', inHome('file'), inHome('other')])
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
