// Captures and restores that fail, are aborted or killed leave nothing.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { listPids } from '../../../../../coordinator/providers/parts/proc.ts'
import { waitUntil } from '../../../../support/wait-until.ts'
import { archiveKey, BOX_UIDS, changeOwner, createBoxFiles, listStore, openArchives } from './support.ts'

const MIB = 1024 ** 2
const FIXTURE = join(import.meta.dirname, 'fixtures/capture.ts')

/** Processes that work in the directory, such as tar. */
const listProcessesIn = (dir: string): number[] =>
  listPids().filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`).startsWith(dir)
    } catch {
      return false
    }
  })

/** Large enough to be interrupted. */
const largeBox = createBoxFiles(t)
for (let i = 0; i < 6; i++) writeFileSync(join(largeBox.home, `file-${i}`), randomBytes(8 * MIB))
changeOwner(largeBox)
/** The first test that needs the archive 1 of the large box creates it. */
const largeStore = openArchives(t)

const hasChunks = (dir: string): boolean => {
  const chunks = join(dir, 'ws_1/chunks')
  return existsSync(chunks) && readdirSync(chunks).length > 0
}

t.test('an aborted capture terminates its programs and leaves nothing', async (t) => {
  const { archives, dir } = largeStore
  const box = largeBox
  const aborting = new AbortController()
  const capture = archives.capture(box, archiveKey('1'), { signal: aborting.signal })
  await waitUntil('chunks are stored', () => hasChunks(dir))
  aborting.abort(new Error('the reason'))
  await t.rejects(capture, { message: 'the reason' })
  t.same(listProcessesIn(box.dir), [])
  t.same(await listStore(dir), [])
  await t.rejects(archives.capture(box, archiveKey('1'), { signal: aborting.signal }), {
    message: 'the reason',
  })
  await archives.capture(box, archiveKey('1'))
})

t.test('continues the processes whenever a capture is aborted', async (t) => {
  const { archives } = openArchives(t)
  const box = createBoxFiles(t)
  const aborting = new AbortController()
  const events: string[] = []
  const pause = async () => {
    aborting.abort(new Error('the reason'))
    // The thread of the capture ends before the pause begins.
    await archives.capture(box, archiveKey('other'))
    events.push('paused')
    return () => events.push('continued')
  }
  await t.rejects(archives.capture(box, archiveKey('1'), { pause, signal: aborting.signal }), {
    message: 'the reason',
  })
  t.same(events, ['paused', 'continued'])

  const failingPause = () => Promise.reject(new Error('cannot pause'))
  await t.rejects(archives.capture(box, archiveKey('1'), { pause: failingPause }), {
    message: 'cannot pause',
  })
})

t.test('closing the store ends a capture', async (t) => {
  const { archives, dir } = openArchives(t)
  const box = largeBox
  const capture = archives.capture(box, archiveKey('1'))
  const rejected = t.rejects(capture, { message: 'The coordinator is shutting down.' })
  await waitUntil('chunks are stored', () => hasChunks(dir))
  await archives.close()
  await rejected
  t.same(listProcessesIn(box.dir), [])
})

t.test('a capture beyond the limit fails and leaves nothing', async (t) => {
  const box = largeBox
  const small = openArchives(t, { maxBytes: 20 * MIB })
  await t.rejects(small.archives.capture(box, archiveKey('1')), {
    name: 'PermanentProviderError',
    message: 'The files of the box are too large for an archive. Delete some of them, then try again.',
  })
  t.same(await listStore(small.dir), [])
  const full = openArchives(t, { reserveBytes: Number.MAX_SAFE_INTEGER })
  await t.rejects(full.archives.capture(box, archiveKey('1')), {
    name: 'PermanentProviderError',
    message: 'The disk of the archives is almost full. Free space on it, then try again.',
  })
  t.same(await listStore(full.dir), [])
})

t.test('a killed coordinator leaves no process, and the next one removes its data', async (t) => {
  const first = openArchives(t)
  const { dir } = first
  const kept = createBoxFiles(t)
  writeFileSync(join(kept.home, 'file'), randomBytes(MIB))
  changeOwner(kept)
  await first.archives.capture(kept, archiveKey('1'))
  const before = await listStore(dir)
  await first.archives.close()

  const box = largeBox
  const chunkCount = () => readdirSync(join(dir, 'ws_1/chunks')).length
  const chunksBefore = chunkCount()
  const child = spawn(process.execPath, [FIXTURE, 'capture', dir, box.dir, `${BOX_UIDS[0] ?? '-'}`], {
    stdio: 'inherit',
  })
  await waitUntil('chunks are stored', () => chunkCount() > chunksBefore)
  child.kill('SIGKILL')
  t.same((await once(child, 'exit'))[1], 'SIGKILL', 'the capture was interrupted')
  await waitUntil('no process is left', () => listProcessesIn(box.dir).length === 0)
  t.not((await listStore(dir)).length, before.length, 'data is left')

  const { archives } = openArchives(t, { dir })
  await waitUntil('the data is removed', async () => (await listStore(dir)).length === before.length)
  t.same(await listStore(dir), before)
  await archives.restore(archiveKey('1'), createBoxFiles(t))
})

t.test('a killed coordinator ends a restore', async (t) => {
  const { archives, dir } = largeStore
  await archives.capture(largeBox, archiveKey('1'))
  const target = createBoxFiles(t)
  const child = spawn(process.execPath, [FIXTURE, 'restore', dir, target.dir, `${BOX_UIDS[0] ?? '-'}`], {
    stdio: 'inherit',
  })
  await waitUntil('files are restored', () => existsSync(join(target.home, 'file-1')))
  child.kill('SIGKILL')
  t.same((await once(child, 'exit'))[1], 'SIGKILL', 'the restore was interrupted')
  await waitUntil('no process is left', () => listProcessesIn(target.dir).length === 0)
})

t.test('captures that run while archives are removed keep their content', async (t) => {
  const { archives, dir } = openArchives(t)
  const box = createBoxFiles(t)
  for (let i = 0; i < 4; i++) writeFileSync(join(box.home, `file-${i}`), randomBytes(MIB))
  changeOwner(box)
  await archives.capture(box, archiveKey('0'))
  // workspaces.test.ts tests each order of the calls.
  const ROUNDS = 2
  for (let round = 0; round < ROUNDS; round++) {
    // Each capture uses the chunks of the archive that is removed meanwhile.
    const captures = ['a', 'b'].map((name) => archives.capture(box, archiveKey(`${round}${name}`)))
    await archives.remove(archiveKey(`${round}`))
    await Promise.all(captures)
    await archives.remove(archiveKey(`${round}a`))
    const next = archives.capture(box, archiveKey(`${round + 1}`))
    await Promise.all([next, archives.remove(archiveKey(`${round}b`))])
  }
  const target = createBoxFiles(t)
  await archives.restore(archiveKey(`${ROUNDS}`), target)
  t.equal(readdirSync(target.home).length, 4)
  await archives.remove(archiveKey(`${ROUNDS}`))
  t.same(await listStore(dir), [])
})
