// Backups that cannot be restored, directories that are not empty, and interruptions: nothing is written, or nothing is left.
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startCoordinator } from '../../../../coordinator/server/app.ts'
import { requestBackup } from '../../../../coordinator/server/backup/backup-socket.ts'
import { backupDescription, DESCRIPTION_ENTRY } from '../../../../coordinator/server/backup/format.ts'
import { packBackup } from '../../../../coordinator/server/backup/pack.ts'
import { restoreBackup } from '../../../../coordinator/server/backup/restore.ts'
import { writeBackup } from '../../../../coordinator/server/backup/write-backup.ts'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { mountSmallDisk, SKIP_MOUNT } from '../../../support/small-disk.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { backUp, configOf, listNames, NEVER } from './support.ts'

const root = createTempDir(t, 'refusals')
const source = await startTestCoordinator(t)
const backup = await backUp(t, source.dataDir, { includeBoxes: false })
const BLOCK = 512

/** Expects that the restore of the file fails and leaves no data directory. */
async function expectRefusal(t: Test, file: string, message: RegExp): Promise<void> {
  const dataDir = join(createTempDir(t, 'refused'), 'data')
  await t.rejects(restoreBackup(configOf(dataDir), file, NEVER), { name: 'StartError', message })
  t.notOk(existsSync(dataDir), 'the data directory was not created')
}

t.test('a backup with a changed byte anywhere is refused', async (t) => {
  const content = readFileSync(backup)
  const positions = [0, 100, 600, Math.floor(content.length / 2), content.length - 3 * BLOCK]
  for (const position of positions) {
    const damaged = Buffer.from(content)
    damaged[position] = (damaged[position] ?? 0) ^ 0xff
    const file = join(root, 'damaged.tar')
    writeFileSync(file, damaged)
    await expectRefusal(t, file, /damaged|not a backup/)
  }
})

t.test('a backup that was cut off at any entry is refused', async (t) => {
  const { size } = statSync(backup)
  const checksumsBytes = 4 * BLOCK
  for (const length of [
    0,
    10,
    BLOCK,
    4 * BLOCK,
    Math.floor(size / 2),
    size - checksumsBytes,
    size - 3 * BLOCK,
  ]) {
    const file = join(root, 'truncated.tar')
    cpSync(backup, file)
    truncateSync(file, length)
    await expectRefusal(t, file, /damaged|not complete|not a backup/)
  }
})

t.test('a file that is not a backup, and a missing one', async (t) => {
  const file = join(root, 'text')
  writeFileSync(file, 'hello\n'.repeat(1000))
  await expectRefusal(t, file, /not a backup of Boxwood/)
  await expectRefusal(t, join(root, 'missing'), /Cannot read .*missing.*ENOENT/)
})

/** Writes a backup with other content, and valid checksums. */
async function writeCrafted(
  change: { format?: number; migrations?: string[] },
  files: Record<string, string>,
): Promise<string> {
  const text = readFileSync(backup).subarray(BLOCK).toString('utf8')
  const description = backupDescription.parse(JSON.parse(text.slice(0, text.indexOf('\n}\n') + 2)))
  async function* listFiles() {
    for (const [name, content] of Object.entries(files)) {
      const path = join(root, 'content')
      writeFileSync(path, content)
      yield { name, path }
    }
  }
  const file = join(root, 'crafted.tar')
  const blocks: Buffer[] = []
  for await (const block of packBackup({ ...description, ...change, version: '9.9.9' }, listFiles()))
    blocks.push(block)
  writeFileSync(file, Buffer.concat(blocks))
  return file
}

t.test('a backup of a newer version is refused', async (t) => {
  const newerSchema = await writeCrafted(
    { migrations: ['0001-initial', '9999-later'] },
    { 'boxwood.db': 'x' },
  )
  await expectRefusal(t, newerSchema, /newer version of Boxwood \(9\.9\.9\)/)
  const newerFormat = await writeCrafted({ format: 2 }, { 'boxwood.db': 'x' })
  await expectRefusal(t, newerFormat, /written by Boxwood 9\.9\.9, and this version cannot read it/)
})

t.test('entries outside the data directory, unknown ones and a damaged database are refused', async (t) => {
  for (const name of [
    '../outside',
    '/etc/passwd',
    'archives/../../outside',
    'coordinator.json',
    DESCRIPTION_ENTRY,
  ])
    await expectRefusal(t, await writeCrafted({}, { 'boxwood.db': 'x', [name]: 'x' }), /damaged/)
  await expectRefusal(t, await writeCrafted({}, { 'owner.key': 'x' }), /boxwood\.db is missing/)
  await expectRefusal(
    t,
    await writeCrafted({}, { 'boxwood.db': 'not a database' }),
    /The database in .* is damaged/,
  )
})

t.test('a directory that is not empty is refused and remains as it was', async (t) => {
  const dataDir = join(root, 'used')
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'file'), 'content')
  await t.rejects(restoreBackup(configOf(dataDir), backup, NEVER), { message: /is not empty/ })
  t.same(listNames(dataDir), ['file'])
})

t.test('after an interrupted restore the coordinator refuses, and another restore works', async (t) => {
  const dataDir = join(root, 'interrupted')
  mkdirSync(join(dataDir, 'restore-incomplete'), { recursive: true })
  writeFileSync(join(dataDir, 'boxwood.db'), 'moved by the interrupted restore')
  await t.rejects(startCoordinator(configOf(dataDir)), {
    name: 'StartError',
    message: /boxwood restore.*again/,
  })
  await restoreBackup(configOf(dataDir), backup, NEVER)
  t.same(listNames(dataDir), ['boxwood.db', 'host', 'master-keys', 'owner.key'])
})

t.test('an aborted restore leaves the empty directory as it was', async (t) => {
  const dataDir = join(root, 'empty')
  mkdirSync(dataDir)
  await t.rejects(restoreBackup(configOf(dataDir), backup, AbortSignal.abort(new Error('interrupted'))), {
    message: 'interrupted',
  })
  t.same(listNames(dataDir), [])
})

t.test('an existing file is not replaced, and an interrupted backup leaves no file', async (t) => {
  const dir = createTempDir(t, 'files')
  const file = join(dir, 'boxwood.tar')
  writeFileSync(file, 'earlier')
  const config = configOf(source.dataDir)
  const options = { includeBoxes: false, signal: NEVER }
  await t.rejects(writeBackup(config, file, options), { message: /boxwood\.tar exists/ })
  t.equal(readFileSync(file, 'utf8'), 'earlier')
  const signal = AbortSignal.abort(new Error('interrupted'))
  await t.rejects(writeBackup(config, join(dir, 'other.tar'), { includeBoxes: false, signal }), {
    message: 'interrupted',
  })
  t.same(listNames(dir), ['boxwood.tar'])
  await t.rejects(writeBackup(config, join(dir, 'missing/boxwood.tar'), options), { message: /Cannot write/ })
  await t.rejects(writeBackup(configOf(dir), join(dir, 'new.tar'), options), {
    message: /is not the data directory of a coordinator/,
  })
  await waitUntil('the copies are removed', () => listNames(join(source.dataDir, 'backup-tmp')).length === 0)
})

t.test('a full disk fails the backup and the restore, and leaves nothing', async (t) => {
  const disk = mountSmallDisk(t, 1)
  if (disk === undefined) return t.comment(SKIP_MOUNT)
  disk.fill()
  t.equal(statSync(backup).size > 100_000, true)
  await t.rejects(
    writeBackup(configOf(source.dataDir), join(disk.dir, 'boxwood.tar'), {
      includeBoxes: false,
      signal: NEVER,
    }),
    { name: 'StartError', message: /Cannot write .*ENOSPC/ },
  )
  t.same(listNames(disk.dir), ['fill'])
  disk.free()
  writeFileSync(join(disk.dir, 'fill'), Buffer.alloc(900 * 1024))
  const dataDir = join(disk.dir, 'data')
  await t.rejects(restoreBackup(configOf(dataDir), backup, NEVER), {
    name: 'StartError',
    message: /ENOSPC|full/,
  })
  t.same(listNames(disk.dir), ['fill'])
})

t.test('one backup runs at a time, and a coordinator that stops meanwhile fails it', async (t) => {
  const other = await startTestCoordinator(t)
  const options = { includeBoxes: false }
  const first = await requestBackup(other.dataDir, options, NEVER)
  await t.rejects(requestBackup(other.dataDir, options, NEVER), { message: /Another backup is running/ })
  await first.release()
  const second = await requestBackup(other.dataDir, options, NEVER)
  await other.instance.close()
  await t.rejects(second.release(), {
    name: 'StartError',
    message: /has stopped before the backup was complete/,
  })
  t.same(listNames(join(other.dataDir, 'backup-tmp')), [])
})
