// Data directories that other users of this machine control.
import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openDataDirectory } from '../../coordinator/base/data-directory.ts'
import { findForeignControl } from '../../shared/foreign-directory.ts'
import { runBox } from '../cli/run-box.ts'
import { createTempDir } from '../support/temp-dir.ts'

const ownUid = process.getuid?.() ?? 0
const isRoot = ownUid === 0
const OTHER_UID = 54_321

function createDataDir(t: Test) {
  const root = createTempDir(t, 'foreign')
  const parent = join(root, 'parent')
  const dir = join(parent, 'data')
  mkdirSync(dir, { recursive: true })
  return { root, parent, dir }
}

t.test('a directory of this user or of root', (t) => {
  const { dir, parent } = createDataDir(t)
  t.equal(findForeignControl(dir, ownUid), null)
  t.equal(findForeignControl(join(parent, 'new/data'), ownUid), null, 'one that does not exist yet')
  t.equal(findForeignControl('/usr/lib', OTHER_UID), null)
  t.end()
})

t.test('a directory in which every user can replace entries', async (t) => {
  const { dir, parent } = createDataDir(t)
  chmodSync(parent, 0o777)
  for (const path of [dir, join(parent, 'new/data')])
    t.match(findForeignControl(path, ownUid), `everyone can write to ${parent}`, path)
  await t.rejects(openDataDirectory(dir), { message: /everyone can write/ })
  chmodSync(parent, 0o1777)
  t.equal(findForeignControl(dir, ownUid), null, 'the sticky bit, as in /tmp')
  chmodSync(parent, 0o775)
  t.equal(findForeignControl(dir, ownUid), null)
})

t.test(
  'the directory of another user',
  isRoot ? {} : { skip: 'only root can change the owner of a directory' },
  async (t) => {
    const { dir, root } = createDataDir(t)
    chownSync(dir, OTHER_UID, OTHER_UID)
    const refusal = `${dir} belongs to another user (uid ${OTHER_UID})`
    t.match(findForeignControl(dir, 0), refusal)
    t.equal(findForeignControl(dir, OTHER_UID), null, 'its owner may use it')
    await t.rejects(openDataDirectory(dir), { message: refusal })
    for (const args of [['up'], ['down'], ['status']]) {
      const { code, stderr } = await runBox(null, args, { env: { BOXWOOD_DATA: dir } })
      t.not(code, 0, args.join(' '))
      t.match(stderr, refusal)
    }
    const { dir: ownDir } = createDataDir(t)
    const link = join(root, 'link')
    symlinkSync(ownDir, link)
    t.equal(findForeignControl(link, 0), null)
    lchownSync(link, OTHER_UID, OTHER_UID)
    t.match(findForeignControl(link, 0), `${link} belongs to another user`, 'a link to a directory of root')
  },
)
