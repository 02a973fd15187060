// A small file system for tests of a full disk.
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createTempDir } from './temp-dir.ts'

export const SKIP_MOUNT = 'mounting a file system is not permitted'

/**
 * Mounts a tmpfs of this size in a temporary directory until the test ends. undefined where the test may not mount.
 * @param inodes how many files and directories the disk has space for
 */
export function mountSmallDisk(t: Test, mebibytes: number, inodes?: number) {
  const dir = join(createTempDir(t, 'small-disk'), 'disk')
  mkdirSync(dir)
  const options = [
    `size=${mebibytes}m,mode=0711`,
    ...(inodes === undefined ? [] : [`nr_inodes=${inodes}`]),
  ].join()
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'boxwood-test', dir], {
    stdio: 'ignore',
  })
  if (status !== 0) return undefined
  t.teardown(() => spawnSync('umount', ['--lazy', dir]))
  const fillFile = join(dir, 'fill')
  return {
    dir,
    /** Writes a file until the disk is full. */
    fill() {
      try {
        writeFileSync(fillFile, Buffer.alloc(2 * mebibytes * 1024 * 1024))
      } catch (error) {
        t.match(error, { code: 'ENOSPC' })
      }
    },
    free: () => rmSync(fillFile),
  }
}
