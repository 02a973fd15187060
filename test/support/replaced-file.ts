// What the user of a box can create at the path of a file that the agent reads or writes.
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'

const KINDS: Record<string, (path: string) => void> = {
  directory: (path) => mkdirSync(join(path, 'a/b'), { recursive: true }),
  FIFO: (path) => void execFileSync('mkfifo', [path]),
  'huge file': (path) => {
    writeFileSync(path, '')
    truncateSync(path, 8 * 1024 ** 3)
  },
  'symbolic link to itself': (path) => symlinkSync(path, path),
  'symbolic link to a device': (path) => symlinkSync('/dev/zero', path),
  'text of another format': (path) => writeFileSync(path, '{"a":1}\n'),
  'empty file': (path) => writeFileSync(path, ''),
}

/** Runs a subtest for each kind. `replace` deletes what is at the path and creates that kind. */
export async function forEachReplacement(
  t: Test,
  test: (t: Test, replace: (path: string) => void) => Promise<void>,
) {
  for (const [kind, create] of Object.entries(KINDS))
    await t.test(kind, (t) =>
      test(t, (path) => {
        rmSync(path, { recursive: true, force: true })
        create(path)
      }),
    )
}
