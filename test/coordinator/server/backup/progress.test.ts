// The progress of a backup, which a running coordinator sends to the command.
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { requestBackup } from '../../../../coordinator/server/backup/backup-socket.ts'
import type { BackupProgress } from '../../../../coordinator/server/backup/progress.ts'
import { writeBackup } from '../../../../coordinator/server/backup/write-backup.ts'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { FakeInfrastructure } from '../../../support/fake-infrastructure.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { configOf, listNames, NEVER } from './support.ts'

const infra = new FakeInfrastructure()
const coordinator = await startTestCoordinator(t, {
  infra,
  provider: {
    ...infra.provider,
    holdArchives: async () => ({ dir: createTempDir(t, 'archives'), release: () => undefined }),
  },
})
const { api, dataDir, waitForState } = coordinator
const { json } = await api('GET', '/boxes')
const other = await api('POST', '/boxes', {})
for (const { id } of [json.boxes[0], other.json.box]) await waitForState(id, 'running')

/** The progress so far. */
function collectProgress() {
  const progress: BackupProgress[] = []
  return { progress, onProgress: (each: BackupProgress) => void progress.push(each) }
}

t.test('a running coordinator sends how many boxes are read, while it reads them', async (t) => {
  const { progress, onProgress } = collectProgress()
  const file = join(createTempDir(t, 'backup'), 'boxwood.tar')
  const { bytes } = await writeBackup(configOf(dataDir), file, {
    includeBoxes: true,
    onProgress,
    signal: NEVER,
  })
  t.same(
    progress.filter(({ phase }) => phase !== 'file'),
    [
      { phase: 'database', done: 0, total: 0 },
      { phase: 'boxes', done: 0, total: 2 },
      { phase: 'boxes', done: 1, total: 2 },
      { phase: 'boxes', done: 2, total: 2 },
      { phase: 'archives', done: 0, total: 0 },
    ],
  )
  const [first, last] = [progress.find(({ phase }) => phase === 'file'), progress.at(-1)]
  t.match(first, { phase: 'file', done: 512 })
  t.match(last, { phase: 'file', done: bytes })
  // The description and the checksums are not counted.
  const uncounted = bytes - (last?.total ?? 0)
  t.ok(uncounted > 0 && uncounted <= 10 * 512, `${uncounted} bytes`)
})

t.test('the progress arrives before the backup is prepared', async (t) => {
  const { progress, onProgress } = collectProgress()
  const read = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  infra.before.capture = () => held.promise
  const prepared = requestBackup(
    dataDir,
    {
      includeBoxes: true,
      onProgress(each) {
        onProgress(each)
        if (each.phase === 'boxes') read.resolve()
      },
    },
    NEVER,
  )
  await read.promise
  t.match(progress.at(-1), { phase: 'boxes', done: 0, total: 2 })
  held.resolve()
  delete infra.before.capture
  await (await prepared).release()
})

t.test('a client of an earlier version gets only the response', async (t) => {
  const socket = createConnection(join(dataDir, 'backup-socket/backup.sock'))
  socket.write(`${JSON.stringify({ includeBoxes: true })}\n`)
  const { value } = await createInterface({ input: socket })[Symbol.asyncIterator]().next()
  t.match(JSON.parse(value ?? ''), { description: { boxes: { included: 2, omitted: 0 } } })
  socket.end()
  await waitUntil('the copies are removed', () => listNames(join(dataDir, 'backup-tmp')).length === 0)
})

t.test('a backup without boxes, and without a coordinator', async (t) => {
  await coordinator.close()
  const { progress, onProgress } = collectProgress()
  const file = join(createTempDir(t, 'backup'), 'boxwood.tar')
  await writeBackup(configOf(dataDir), file, { includeBoxes: false, onProgress, signal: NEVER })
  t.same([...new Set(progress.map(({ phase }) => phase))], ['database', 'archives', 'file'])
})
