// Copies the files of an archive to another archive, without the state of the agent.
import { chownSync, existsSync, linkSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { RootFilter } from '../../../../../coordinator/providers/parts/archives/root-filter.ts'
import { PermanentProviderError } from '../../../../../coordinator/providers/provider.ts'
import { END_OF_ARCHIVE, encodeTarHeader } from '../../../../../shared/tar.ts'
import { describeTree } from '../../../../support/tree-manifest.ts'
import { createOddTree } from './odd-tree.ts'
import { archiveKey, BOX_UIDS, createBoxFiles, isRoot, openArchives, ROOTS } from './support.ts'

const ALL_ROOTS = ['home', 'state', 'tmp', 'var-tmp']
const UNREADABLE = isRoot ? [] : ['locked', 'no-permissions']
const STATE_BYTES = 300_000

const describeBox = ({ dir, uid }: { dir: string; uid: number | null }) =>
  ROOTS.flatMap((root) =>
    describeTree(join(dir, root), { except: UNREADABLE, ...(uid === null ? {} : { uid }) }),
  )

/** A box with the state of an agent. */
function createSource(t: Parameters<typeof createBoxFiles>[0]) {
  const source = { ...createBoxFiles(t), roots: ALL_ROOTS }
  const state = join(source.dir, 'state')
  mkdirSync(join(state, 'processes'), { recursive: true, mode: 0o700 })
  writeFileSync(join(state, 'processes/log'), Buffer.alloc(STATE_BYTES, 'state '))
  writeFileSync(join(source.dir, 'tmp/file'), 'temporary')
  const { uid } = source
  if (uid !== null) for (const path of [state, join(state, 'processes')]) chownSync(path, uid, uid)
  return { source, state }
}

t.test('copies every kind of entry except those of the agent', async (t) => {
  const { archives } = openArchives(t)
  const { source } = createSource(t)
  createOddTree(source)
  const expected = describeBox(source)
  await archives.capture(source, archiveKey('all'))
  const info = await archives.copy(archiveKey('all'), archiveKey('files'), ROOTS)
  t.equal(info.pausedMs, null)
  t.same(await archives.copy(archiveKey('all'), archiveKey('files'), ROOTS), info, 'an archive that exists')
  await archives.remove(archiveKey('all'))

  const target = { ...createBoxFiles(t, BOX_UIDS[1]), roots: ALL_ROOTS }
  await archives.restore(archiveKey('files'), target)
  t.strictSame(describeBox(target), expected)
  t.notOk(existsSync(join(target.dir, 'state')))
})

t.test('stores only the chunks that the removal of the state has changed', async (t) => {
  const { archives } = openArchives(t)
  const { source } = createSource(t)
  const content = Buffer.alloc(4_000_000)
  for (let i = 0; i < content.length; i += 4) content.writeUInt32LE(Math.imul(i, 2_654_435_761) >>> 0, i)
  writeFileSync(join(source.home, 'large'), content)
  const all = await archives.capture(source, archiveKey('all'))
  const { storedBytes, contentBytes } = await archives.copy(archiveKey('all'), archiveKey('files'), ROOTS)
  t.ok(storedBytes < all.storedBytes / 4, `${storedBytes} of ${all.storedBytes} bytes`)
  t.ok(contentBytes < all.contentBytes, `${contentBytes} of ${all.contentBytes} bytes`)
  const target = createBoxFiles(t, BOX_UIDS[1])
  await archives.restore(archiveKey('files'), target)
  t.ok(readFileSync(join(target.home, 'large')).equals(content))
})

t.test('refuses to copy a hard link to a file of the agent', async (t) => {
  const { archives, dir } = openArchives(t)
  const { source, state } = createSource(t)
  linkSync(join(state, 'processes/log'), join(source.dir, 'tmp/link'))
  await archives.capture(source, archiveKey('all'))
  const copy = archives.copy(archiveKey('all'), archiveKey('files'), ROOTS)
  const message = /tmp\/link is a hard link to a file of the agent.*Wake the box/
  await t.rejects(copy, Object.assign(new PermanentProviderError(), { message }))
  t.notOk(existsSync(join(dir, 'ws_1/archives/snp_files')), 'nothing is left')
})

t.test('a missing archive is not copied', async (t) => {
  const { archives } = openArchives(t)
  await t.rejects(archives.copy(archiveKey('none'), archiveKey('files'), ROOTS), { name: 'ArchiveError' })
})

t.test('selects the same bytes wherever the stream is split', (t) => {
  const entry = (name: string, text: string) => {
    const metadata = { mode: 0o644, uid: 0, gid: 0, mtime: 0 }
    const header = encodeTarHeader({ ...metadata, name: Buffer.from(name), type: 'file', size: text.length })
    return Buffer.concat([header, Buffer.from(text.padEnd(Math.ceil(text.length / 512) * 512, '\0'))])
  }
  const [home, state, tmp] = [entry('home/a', 'x'.repeat(600)), entry('state/b', 'y'), entry('tmp/c', '')]
  const stream = Buffer.concat([home, state, tmp, END_OF_ARCHIVE])
  const expected = Buffer.concat([home, tmp, END_OF_ARCHIVE])
  for (const length of [1, 511, 512, 513, 10_000]) {
    const filter = new RootFilter(['home', 'tmp'])
    const parts: Buffer[] = []
    for (let at = 0; at < stream.length; at += length)
      parts.push(filter.push(stream.subarray(at, at + length)))
    t.ok(Buffer.concat(parts).equals(expected), `${length} bytes at once`)
  }
  t.end()
})
