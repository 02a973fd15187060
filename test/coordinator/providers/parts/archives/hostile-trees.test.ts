// Trees that a box creates to harm the coordinator.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createTempDir } from '../../../../support/temp-dir.ts'
import { describeTree } from '../../../../support/tree-manifest.ts'
import { archiveKey, BOX_UIDS, changeOwner, createBoxFiles, openArchives } from './support.ts'

const [uid] = BOX_UIDS
const user = uid === null ? {} : { uid, gid: uid }

t.test('never stores what a symlink points to, also while it replaces a directory', async (t) => {
  const { archives } = openArchives(t)
  const box = createBoxFiles(t)
  const outside = createTempDir(t, 'outside')
  chmodSync(outside, 0o755)
  writeFileSync(join(outside, 'file'), 'secret of the host')
  const swap = `mkdir -p dir && echo own >dir/file
    ln -s ${outside} link
    while [ "$PWD" ]; do mv -T dir dir.old; mv -T link dir; mv -T dir link; mv -T dir.old dir; done`
  const swapper = spawn('/bin/sh', ['-c', swap], { cwd: box.home, ...user, stdio: 'ignore' })
  t.teardown(() => swapper.kill('SIGKILL'))
  await once(swapper, 'spawn')
  let captured = 0
  for (let round = 0; round < 8; round++) {
    const key = archiveKey(`${round}`)
    const failure = await archives.capture(box, key).then(
      () => null,
      (error: unknown) => String(error),
    )
    if (failure !== null) {
      t.match(failure, /The files of the box could not be read/, 'a file that changes')
      continue
    }
    captured++
    let stream = ''
    for await (const data of archives.read(key)) stream += data.toString('latin1')
    t.notMatch(stream, 'secret of the host')
  }
  t.comment(`${captured} captures succeeded`)
})

t.test('stores 20,000 entries', async (t) => {
  const { archives } = openArchives(t)
  const box = createBoxFiles(t)
  for (let i = 0; i < 20; i++) {
    const dir = join(box.home, `dir-${i}`)
    mkdirSync(dir)
    writeFileSync(join(dir, 'file-0'), '')
    for (let k = 1; k < 1000; k++) linkSync(join(dir, 'file-0'), join(dir, `file-${k}`))
  }
  changeOwner(box)
  await archives.capture(box, archiveKey('1'))
  const target = createBoxFiles(t)
  await archives.restore(archiveKey('1'), target)
  t.equal(readdirSync(target.home).length, 20)
  t.equal(readdirSync(join(target.home, 'dir-19')).length, 1000)
  t.equal(statSync(join(target.home, 'dir-19/file-7')).nlink, 1000)
})

t.test('a sparse file of terabytes costs what it contains', async (t) => {
  const { archives } = openArchives(t)
  const box = createBoxFiles(t)
  const path = join(box.home, 'sparse')
  const size = 15 * 1024 ** 4
  const middle = 7 * 1024 ** 4
  const file = openSync(path, 'w')
  try {
    ftruncateSync(file, size)
  } catch {
    t.pass('a file of 15 TiB', { skip: 'the file system does not support files of this size' })
    return
  } finally {
    closeSync(file)
  }
  const data = openSync(path, 'r+')
  writeSync(data, 'middle', middle)
  writeSync(data, 'end', size - 3)
  closeSync(data)
  changeOwner(box)
  const info = await archives.capture(box, archiveKey('1'))
  t.ok(info.contentBytes < 1024 ** 2 && info.storedBytes < 1024 ** 2, JSON.stringify(info))
  const target = createBoxFiles(t)
  await archives.restore(archiveKey('1'), target)
  const restored = openSync(join(target.home, 'sparse'), 'r')
  t.teardown(() => closeSync(restored))
  const buffer = Buffer.alloc(6)
  readSync(restored, buffer, 0, 6, middle)
  t.equal(buffer.toString(), 'middle')
  t.same(
    describeTree(target.home, { uid: uid ?? process.getuid?.() ?? 0 }),
    describeTree(box.home, { uid: uid ?? process.getuid?.() ?? 0 }),
  )
})

t.test('reports a path that is too long', async (t) => {
  const { archives } = openArchives(t)
  const box = createBoxFiles(t)
  const name = 'n'.repeat(255)
  const descend = `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do mkdir ${name} && cd -P ${name} || exit; done; echo >file`
  execFileSync('/bin/bash', ['-c', descend], { cwd: box.home, ...user })
  await t.rejects(archives.capture(box, archiveKey('1')), {
    name: 'PermanentProviderError',
    message: /^The path that starts with home\/n+ is longer than 4095 bytes\. Shorten it, then try again\.$/,
  })
})
