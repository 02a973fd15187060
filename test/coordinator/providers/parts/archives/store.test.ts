// What the archive store contains, verifies and removes.
import { randomBytes } from 'node:crypto'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ArchiveError } from '../../../../../coordinator/providers/provider.ts'
import { createTempDir } from '../../../../support/temp-dir.ts'
import { archiveKey, changeOwner, createBoxFiles, listStore, openArchives } from './support.ts'

const MIB = 1024 ** 2

function createRandomTree(t: Test, files = 10) {
  const box = createBoxFiles(t)
  for (let i = 0; i < files; i++) writeFileSync(join(box.home, `file-${i}`), randomBytes(MIB))
  changeOwner(box)
  return box
}

t.test('stores equal content once per workspace', async (t) => {
  const { archives } = openArchives(t)
  const box = createRandomTree(t)
  const first = await archives.capture(box, archiveKey('1'))
  t.ok(
    first.contentBytes >= 10 * MIB && first.contentBytes < 11 * MIB,
    `${first.contentBytes} bytes of content`,
  )
  t.ok(first.storedBytes >= 10 * MIB, 'random content does not shrink')
  // 1 % of the content, in the middle of a file.
  const changed = readFileSync(join(box.home, 'file-5'))
  randomBytes(MIB / 10).copy(changed, MIB / 2)
  writeFileSync(join(box.home, 'file-5'), changed)
  const second = await archives.capture(box, archiveKey('2'))
  t.ok(second.storedBytes < 1.5 * MIB, `a change of 100 KiB adds ${second.storedBytes} bytes`)
  const other = await archives.capture(box, archiveKey('3', 'ws_2'))
  t.ok(other.storedBytes >= 10 * MIB, 'another workspace shares nothing')
})

t.test('returns the information of an archive that exists', async (t) => {
  const { archives } = openArchives(t)
  const box = createRandomTree(t, 2)
  const info = await archives.capture(box, archiveKey('1'))
  writeFileSync(join(box.home, 'new'), 'content')
  t.same(await archives.capture(box, archiveKey('1')), info)
})

t.test('removes only what no other archive uses', async (t) => {
  const { archives, dir } = openArchives(t)
  const box = createRandomTree(t, 2)
  await archives.capture(box, archiveKey('1'))
  const files = await listStore(dir)
  writeFileSync(join(box.home, 'new'), randomBytes(MIB))
  changeOwner(box)
  await archives.capture(box, archiveKey('2'))
  await archives.remove(archiveKey('1'))
  const target = createBoxFiles(t)
  await archives.restore(archiveKey('2'), target)
  t.same(readFileSync(join(target.home, 'new')), readFileSync(join(box.home, 'new')))
  t.not(
    files.filter((path) => existsSync(path)).length,
    files.length,
    'chunks of the first archive are removed',
  )

  await archives.remove(archiveKey('2'))
  await archives.remove(archiveKey('2'))
  t.notOk(existsSync(join(dir, 'ws_1')), 'nothing is left')
})

t.test('removes everything of a workspace, also what interrupted captures have left', async (t) => {
  const { archives, dir } = openArchives(t)
  const box = createRandomTree(t, 1)
  for (const id of ['1', '2']) await archives.capture(box, archiveKey(id))
  await archives.capture(box, archiveKey('3', 'ws_2'))
  const unused = join(dir, 'ws_1/chunks', 'ff')
  mkdirSync(unused, { recursive: true })
  writeFileSync(join(unused, 'f'.repeat(64)), 'content')
  await archives.removeAll('ws_1')
  await archives.removeAll('ws_1')
  t.notOk(existsSync(join(dir, 'ws_1')))
  const target = createBoxFiles(t)
  await archives.restore(archiveKey('3', 'ws_2'), target)
  t.same(readFileSync(join(target.home, 'file-0')), readFileSync(join(box.home, 'file-0')))
})

t.test('reports a damaged archive and restores nothing more', async (t) => {
  const damages: Record<string, (path: { chunk: string; manifest: string; list: string }) => void> = {
    'a missing chunk': ({ chunk }) => rmSync(chunk),
    'a truncated chunk': ({ chunk }) => truncateSync(chunk, Math.floor(statSync(chunk).size / 2)),
    'an empty chunk': ({ chunk }) => truncateSync(chunk, 0),
    'a chunk with other content': ({ chunk }) => writeFileSync(chunk, flipBit(readFileSync(chunk))),
    'a missing manifest': ({ manifest }) => rmSync(manifest),
    'an invalid manifest': ({ manifest }) => writeFileSync(manifest, '{}'),
    'a missing list': ({ list }) => rmSync(list),
    'a longer list': ({ list }) => appendFileSync(list, readFileSync(list)),
    'a list with another chunk': ({ list }) => writeFileSync(list, flipBit(readFileSync(list))),
  }
  const undamaged = openArchives(t)
  await undamaged.archives.capture(createRandomTree(t, 2), archiveKey('1'))
  for (const [name, damage] of Object.entries(damages)) {
    t.test(name, async (t) => {
      const dir = join(createTempDir(t, 'damaged'), 'archives')
      cpSync(undamaged.dir, dir, { recursive: true })
      const { archives } = openArchives(t, { dir })
      const files = await listStore(dir)
      const find = (text: string) => files.find((path) => path.includes(text)) ?? ''
      damage({
        chunk: find('/chunks/'),
        manifest: find('/archives/snp_1/manifest.json'),
        list: find('/archives/snp_1/chunks'),
      })
      const error = await archives
        .restore(archiveKey('1'), createBoxFiles(t))
        .catch((error: unknown) => error)
      t.ok(error instanceof ArchiveError, String(error))
      t.match((error as Error).message, /^Archive snp_1 cannot be restored: .*\. Use another snapshot\.$/)
      await t.rejects(drain(archives.read(archiveKey('1'))), { name: 'ArchiveError' })
    })
  }
})

t.test('reports an archive that does not exist', async (t) => {
  const { archives } = openArchives(t)
  await t.rejects(archives.restore(archiveKey('1'), createBoxFiles(t)), {
    name: 'ArchiveError',
    message: 'Archive snp_1 cannot be restored: it is missing. Use another snapshot.',
  })
  await t.rejects(archives.restore({ workspaceId: '..', archiveId: 'snp_1' }, createBoxFiles(t)), {
    message: 'Not a workspace id: ..',
  })
})

t.test('copies an archive to another store', async (t) => {
  const box = createRandomTree(t, 2)
  const { archives: source } = openArchives(t)
  const { archives: target, dir } = openArchives(t)
  const { storedBytes } = await source.capture(box, archiveKey('1'))
  const info = await target.write(archiveKey('1'), source.read(archiveKey('1')))
  t.equal(info.storedBytes, storedBytes)
  const restored = createBoxFiles(t)
  await target.restore(archiveKey('1'), restored)
  t.same(readFileSync(join(restored.home, 'file-1')), readFileSync(join(box.home, 'file-1')))

  await t.rejects(
    target.write(archiveKey('2'), source.read(archiveKey('missing'))),
    { name: 'ArchiveError' },
    'the failure of the source',
  )
  await target.remove(archiveKey('1'))
  t.same(await listStore(dir), [], 'the failed copy left nothing')
})

/** Changes the byte in the middle. */
function flipBit(bytes: Buffer): Buffer {
  const middle = Math.floor(bytes.length / 2)
  bytes[middle] = (bytes[middle] ?? 0) ^ 1
  return bytes
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}
