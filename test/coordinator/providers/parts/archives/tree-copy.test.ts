// Copies trees without the store, and stores and restores them on each file system, and compares them with their sources.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FILE_SYSTEMS, mountFileSystem } from '../../../../support/file-systems.ts'
import { mountSmallDisk, SKIP_MOUNT } from '../../../../support/small-disk.ts'
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
const MIB = 1024 ** 2

/** Without its holes, the file has 64 MiB. */
const readSparseBytes = ({ home }: { home: string }) => lstatSync(join(home, 'sparse')).blocks * 512

const describeBox = ({ dir, uid }: { dir: string; uid: number | null }) =>
  ROOTS.flatMap((root) =>
    describeTree(join(dir, root), { except: UNREADABLE, ...(uid === null ? {} : { uid }) }),
  )

for (const name of FILE_SYSTEMS)
  t.test(`copies every kind of entry, for another user, on ${name}`, async (t) => {
    const disk = mountFileSystem(t, name)
    if ('skip' in disk) return t.pass(disk.skip, { skip: disk.skip })
    const { archives, dir: store } = openArchives(t)
    const [sourceDir, targetDir] = ['source', 'target'].map((each) => join(disk.dir, each))
    for (const dir of [sourceDir, targetDir]) mkdirSync(dir as string)
    const source = createBoxFiles(t, BOX_UIDS[0], sourceDir)
    writeFileSync(join(source.dir, 'tmp/file'), 'temporary')
    createOddTree(source)
    writeFileSync(join(source.dir, 'not-of-the-box'), '')
    const expected = describeBox(source)
    t.ok(expected.length > 40, `${expected.length} lines`)

    const target = createBoxFiles(t, BOX_UIDS[1], targetDir)
    const events: string[] = []
    const info = await archives.copyTree(source, target, {
      pause: async () => {
        events.push('paused')
        return () => events.push('continued')
      },
      verify: () => events.push('verified'),
    })
    t.same(events, ['paused', 'continued', 'verified'])
    t.type(info.pausedMs, 'number')
    t.ok(info.contentBytes > 0)
    t.strictSame(describeBox(target), expected)
    t.strictSame(describeBox(source), expected, 'a copy changes nothing')
    t.same(readdirSync(target.dir).sort(), [...ROOTS].sort())
    t.notOk(existsSync(join(store, 'ws_1')), 'nothing is stored')
    t.ok(readSparseBytes(target) < MIB, 'the copy has the holes')
  })

for (const name of FILE_SYSTEMS)
  t.test(`stores and restores every kind of entry, for another user, on ${name}`, async (t) => {
    const disk = mountFileSystem(t, name)
    if ('skip' in disk) return t.pass(disk.skip, { skip: disk.skip })
    const [store, sourceDir, targetDir] = ['archives', 'source', 'target'].map((each) => join(disk.dir, each))
    for (const dir of [sourceDir, targetDir]) mkdirSync(dir as string)
    const { archives } = openArchives(t, { dir: store as string })
    const source = createBoxFiles(t, BOX_UIDS[0], sourceDir)
    createOddTree(source)
    const expected = describeBox(source)
    await archives.capture(source, archiveKey('1'))
    const target = createBoxFiles(t, BOX_UIDS[1], targetDir)
    await archives.restore(archiveKey('1'), target)
    t.strictSame(describeBox(target), expected)
    t.strictSame(describeBox(source), expected, 'a capture changes nothing')
    t.ok(readSparseBytes(target) < MIB, 'the restored tree has the holes')
    await archives.close()
  })

t.test('copies neither sockets nor the token for AWS', async (t) => {
  const { archives } = openArchives(t)
  const source = createBoxFiles(t)
  mkdirSync(join(source.home, '.boxwood/aws'), { recursive: true })
  for (const name of ['token', 'token.new', 'tokens'])
    writeFileSync(join(source.home, '.boxwood/aws', name), name)
  changeOwner(source)
  await createSocket(t, join(source.home, 'socket'))
  const target = createBoxFiles(t, BOX_UIDS[1])
  await archives.copyTree(source, target)
  t.same(readdirSync(target.home), ['.boxwood'])
  t.same(readdirSync(join(target.home, '.boxwood/aws')), ['tokens'])
})

t.test('without user namespaces', { skip: isRoot ? false : 'it needs root' }, async (t) => {
  const { archives } = openArchives(t, { tools: { hasUserNamespace: false } })
  const source = createBoxFiles(t)
  writeFileSync(join(source.home, 'no-permissions'), 'secret', { mode: 0 })
  changeOwner(source)
  const target = createBoxFiles(t, BOX_UIDS[1])
  await archives.copyTree(source, target)
  t.equal(lstatSync(join(target.home, 'no-permissions')).uid, BOX_UIDS[1])
})

t.test(
  'a failure after the files were read is that of the caller, and continues the processes',
  async (t) => {
    const { archives } = openArchives(t)
    const source = createBoxFiles(t)
    writeFileSync(join(source.home, 'file'), 'text')
    changeOwner(source)
    const events: string[] = []
    const pause = async () => () => events.push('continued')
    const failing = {
      pause,
      verify: () => {
        throw new Error('the files have changed')
      },
    }
    const target = createBoxFiles(t, BOX_UIDS[1])
    await t.rejects(archives.copyTree(source, target, failing), { message: 'the files have changed' })
    const signal = AbortSignal.abort(new Error('the reason'))
    await t.rejects(archives.copyTree(source, target, { pause, signal }), { message: 'the reason' })
    t.same(events, ['continued'])
  },
)

t.test('refuses a box that is too large', async (t) => {
  const { archives } = openArchives(t, { maxBytes: MIB })
  const source = createBoxFiles(t)
  writeFileSync(join(source.home, 'file'), randomBytes(2 * MIB))
  changeOwner(source)
  await t.rejects(archives.copyTree(source, createBoxFiles(t, BOX_UIDS[1])), {
    name: 'PermanentProviderError',
    message: 'The files of the box are too large for a copy. Delete some of them, then try again.',
  })
})

t.test('reports a path that is too long', async (t) => {
  const { archives } = openArchives(t)
  const source = createBoxFiles(t)
  const name = 'n'.repeat(255)
  const descend = `for i in $(seq 16); do mkdir ${name} && cd -P ${name} || exit; done; echo >file`
  execFileSync('/bin/bash', ['-c', descend], { cwd: source.home })
  execFileSync('chown', ['-hRP', `${source.uid ?? process.getuid?.()}`, source.home])
  await t.rejects(archives.copyTree(source, createBoxFiles(t, BOX_UIDS[1])), {
    name: 'PermanentProviderError',
    message: 'A path of the box is longer than 4095 bytes. Shorten it, then try again.',
  })
})

t.test('fails with the reason on a full disk, and before the disk is full', async (t) => {
  const source = createBoxFiles(t)
  writeFileSync(join(source.home, 'file'), randomBytes(40 * MIB))
  changeOwner(source)
  const disk = mountSmallDisk(t, 16)
  if (disk === undefined) return t.pass(SKIP_MOUNT, { skip: SKIP_MOUNT })
  const createTarget = (name: string) => {
    const dir = join(disk.dir, name)
    mkdirSync(dir)
    return createBoxFiles(t, BOX_UIDS[1], dir)
  }
  const { archives } = openArchives(t)
  const failure = {
    name: 'PermanentProviderError',
    message: 'The disk of the boxes is almost full. Free space on it, then try again.',
  }
  await t.rejects(archives.copyTree(source, createTarget('full')), failure)
  const careful = openArchives(t, { reserveBytes: 32 * MIB }).archives
  const reserved = createTarget('reserved')
  await t.rejects(careful.copyTree(source, reserved), failure)
  t.same(readdirSync(reserved.home), [])
})

t.test('a copy does not leave the tree of the box', async (t) => {
  const { archives } = openArchives(t)
  const outside = createTempDir(t, 'outside')
  writeFileSync(join(outside, 'secret'), 'secret')
  const source = createBoxFiles(t)
  symlinkSync(outside, join(source.home, 'link'))
  changeOwner(source)
  const target = createBoxFiles(t, BOX_UIDS[1])
  await archives.copyTree(source, target)
  t.ok(lstatSync(join(target.home, 'link')).isSymbolicLink())
  t.same(readdirSync(outside), ['secret'])
})
