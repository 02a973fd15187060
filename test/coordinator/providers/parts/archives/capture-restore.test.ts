// Captures trees and compares them with what the archive restores.
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createTempDir } from '../../../../support/temp-dir.ts'
import { describeTree } from '../../../../support/tree-manifest.ts'
import { createOddTree } from './odd-tree.ts'
import {
  archiveKey,
  BOX_UIDS,
  changeOwner,
  createBoxFiles,
  createSocket,
  isRoot,
  openArchives,
  ROOTS,
} from './support.ts'

/** A test that does not run as root cannot read them. */
const UNREADABLE = isRoot ? [] : ['locked', 'no-permissions']

const describeBox = ({ dir, uid }: { dir: string; uid: number | null }) =>
  ROOTS.flatMap((root) =>
    describeTree(join(dir, root), { except: UNREADABLE, ...(uid === null ? {} : { uid }) }),
  )

t.test('restores every kind of entry, for another user', async (t) => {
  const { archives } = openArchives(t)
  const source = createBoxFiles(t)
  writeFileSync(join(source.dir, 'tmp/file'), 'temporary')
  createOddTree(source)
  writeFileSync(join(source.dir, 'not-of-the-box'), '')
  const expected = describeBox(source)
  t.ok(expected.length > 40, `${expected.length} lines`)

  const info = await archives.capture(source, archiveKey('a'))
  t.equal(info.pausedMs, null)
  const target = createBoxFiles(t, BOX_UIDS[1])
  await archives.restore(archiveKey('a'), target)
  t.strictSame(describeBox(target), expected)
  t.strictSame(describeBox(source), expected, 'a capture changes nothing')
  t.throws(() => lstatSync(join(target.dir, 'not-of-the-box')), { code: 'ENOENT' })

  const inTarget = (name: string) => join(target.home, name)
  const modes = ['locked', 'no-permissions'].map((name) => lstatSync(inTarget(name)).mode & 0o7777)
  t.same(modes, [0, 0])
  chmodSync(inTarget('no-permissions'), 0o600)
  t.equal(readFileSync(inTarget('no-permissions'), 'utf8'), 'no-permissions')
})

t.test('stores the files of a box below a directory that its user cannot enter', async (t) => {
  const { archives } = openArchives(t)
  const [source, target] = BOX_UIDS.map((uid) => {
    const parent = createTempDir(t, 'private')
    chmodSync(parent, 0o700)
    mkdirSync(join(parent, 'box'))
    return createBoxFiles(t, uid, join(parent, 'box'))
  })
  if (source === undefined || target === undefined) return t.fail('two boxes are needed')
  writeFileSync(join(source.home, 'file'), 'content')
  await archives.capture(source, archiveKey('a'))
  await archives.restore(archiveKey('a'), target)
  t.equal(readFileSync(join(target.home, 'file'), 'utf8'), 'content')
})

t.test('does not store the token for AWS', async (t) => {
  const { archives } = openArchives(t)
  const source = createBoxFiles(t)
  for (const dir of ['.boxwood/aws', 'copy/.boxwood/aws']) {
    mkdirSync(join(source.home, dir), { recursive: true })
    for (const name of ['token', 'token.new', 'tokens']) writeFileSync(join(source.home, dir, name), name)
  }
  changeOwner(source)
  await archives.capture(source, archiveKey('a'))
  const target = createBoxFiles(t, BOX_UIDS[1])
  await archives.restore(archiveKey('a'), target)
  t.same(readdirSync(join(target.home, '.boxwood/aws')), ['tokens'])
  t.same(readdirSync(join(target.home, 'copy/.boxwood/aws')), ['token', 'token.new', 'tokens'])
})

t.test('does not store sockets', async (t) => {
  const { archives } = openArchives(t)
  const source = createBoxFiles(t)
  await createSocket(t, join(source.home, 'socket'))
  await archives.capture(source, archiveKey('a'))
  const target = createBoxFiles(t)
  await archives.restore(archiveKey('a'), target)
  t.throws(() => lstatSync(join(target.home, 'socket')), { code: 'ENOENT' })
})

t.test('without user namespaces', async (t) => {
  const { archives } = openArchives(t, { tools: { hasUserNamespace: false } })
  const box = createBoxFiles(t)
  writeFileSync(join(box.home, 'file'), 'text')
  writeFileSync(join(box.home, 'no-permissions'), 'secret', { mode: 0 })
  changeOwner(box)
  if (isRoot) {
    await archives.capture(box, archiveKey('1'))
    const target = createBoxFiles(t, BOX_UIDS[1])
    await archives.restore(archiveKey('1'), target)
    t.equal(readFileSync(join(target.home, 'no-permissions'), 'utf8'), 'secret')
    t.equal(statSync(join(target.home, 'no-permissions')).uid, BOX_UIDS[1])
  } else {
    await t.rejects(archives.capture(box, archiveKey('1')), {
      name: 'PermanentProviderError',
      message:
        'The files of the box could not be read: tar: home/no-permissions: Cannot open: Permission denied. Change its mode with chmod, then try again.',
    })
  }
})
