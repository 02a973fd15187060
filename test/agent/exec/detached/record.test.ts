// Removing the directory of a process while its runner may still write to it.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { removeDirectory } from '../../../../agent/exec/detached/record.ts'

/** False when the renamed directory no longer exists. */
function tryWriteInto(parent: string, name: string): boolean {
  const [trash] = readdirSync(parent)
  if (trash === undefined) return false
  try {
    writeFileSync(join(parent, trash, name), '')
    return true
  } catch {
    return false
  }
}

t.test('removes a directory while a runner creates files in it', async (t) => {
  const parent = t.testdir()
  const dir = join(parent, 'p_1')
  mkdirSync(dir)
  for (let i = 0; i < 100; i++) writeFileSync(join(dir, `old${i}`), '')
  const removed = removeDirectory(dir)
  let written = 0
  for (let i = 0; i < 100; i++) {
    await nextTurn()
    if (tryWriteInto(parent, `new${i}`)) written += 1
  }
  await removed
  t.ok(written > 0, `${written} files were created during the removal`)
  t.same(readdirSync(parent), [])
})

t.test('ignores a directory that does not exist', async (t) => {
  await removeDirectory(join(t.testdir(), 'p_1'))
})
