// The record of a detached process, as a folder that others may have their hands on.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { removeDirectory } from '../../../../agent/exec/detached/record.ts'

/** 1 where there still was a folder to write to. */
function writeLate(parent: string, number: number): number {
  const [trash] = readdirSync(parent)
  if (trash === undefined) return 0
  try {
    writeFileSync(join(parent, trash, `late${number}`), '')
    return 1
  } catch {
    return 0
  }
}

t.test('a runner that still writes its last there does not keep a folder from being removed', async (t) => {
  const parent = t.testdir()
  const folder = join(parent, 'p_1')
  mkdirSync(folder)
  for (let i = 0; i < 100; i++) writeFileSync(join(folder, `old${i}`), '')
  const removed = removeDirectory(folder)
  let late = 0
  for (let i = 0; i < 100; i++) {
    await turn()
    late += writeLate(parent, i)
  }
  await removed
  t.ok(late > 0, `${late} were written`)
  t.same(readdirSync(parent), [])
})

t.test('a folder that is gone already', async (t) => {
  await removeDirectory(join(t.testdir(), 'p_1'))
})
