// File systems of each kind on loop devices, for tests of copies.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { findProgram, type OptionalProgram } from './requires.ts'
import { SKIP_MOUNT } from './small-disk.ts'
import { createTempDir } from './temp-dir.ts'

/** default: that of the temporary directory. */
export const FILE_SYSTEMS = ['default', 'tmpfs', 'ext4', 'btrfs', 'xfs'] as const
export type FileSystem = (typeof FILE_SYSTEMS)[number]

const MAKE_PROGRAMS: Partial<Record<FileSystem, OptionalProgram>> = { btrfs: 'mkfs.btrfs', xfs: 'mkfs.xfs' }
/** More than captures leave free. The file is sparse. */
const DISK_BYTES = 8 * 1024 ** 3

/** Mounts the file system in a temporary directory until the test ends. */
export function mountFileSystem(t: Test, name: FileSystem): { dir: string } | { skip: string } {
  const parent = createTempDir(t, name)
  if (name === 'default') return { dir: parent }
  const program = MAKE_PROGRAMS[name]
  if (program !== undefined && findProgram(program) === undefined)
    return { skip: `${program} is not installed` }
  const dir = join(parent, 'disk')
  mkdirSync(dir)
  if (name === 'tmpfs') return mount(t, ['-t', 'tmpfs', '-o', 'size=400m', 'boxwood-test', dir], dir)
  const image = join(parent, 'image')
  writeFileSync(image, '')
  truncateSync(image, DISK_BYTES)
  const made = spawnSync(program ?? 'mkfs.ext4', ['-q', ...(name === 'ext4' ? ['-b', '4096'] : []), image], {
    stdio: 'ignore',
  })
  if (made.status !== 0) return { skip: `the file system ${name} cannot be created` }
  return mount(t, ['-t', name, '-o', 'loop', image, dir], dir)
}

function mount(t: Test, args: string[], dir: string): { dir: string } | { skip: string } {
  if (spawnSync('mount', args, { stdio: 'ignore' }).status !== 0) return { skip: SKIP_MOUNT }
  t.teardown(() => spawnSync('umount', ['--lazy', dir]))
  // At level process, the users of boxes enter it.
  for (const path of [dir, dirname(dir)]) chmodSync(path, 0o711)
  return { dir }
}
