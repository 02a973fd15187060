// What an agent restores from the state directory after a kill at any moment.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type ProcessMetadata, writeMetadata } from '../../../../agent/exec/detached/record.ts'
import { restoreMetadata } from '../../../../agent/exec/detached/restore.ts'
import { newId } from '../../../../shared/ids.ts'
import { createTempDir } from '../../../support/temp-dir.ts'

const toMetadata = (processId: string, startedAt: number): ProcessMetadata => ({
  processId,
  digest: '',
  command: 'date',
  cwd: '~',
  startedAt,
  deadline: null,
  bootId: 'boot',
  maxLogBytes: 1024,
  runner: 'native',
  record: null,
  attached: null,
})

t.test('restores started processes in order and removes incomplete directories', async (t) => {
  const dir = createTempDir(t, 'restore')
  const create = async (startedAt: number, isStarted: boolean) => {
    const processId = newId('process')
    mkdirSync(join(dir, processId))
    await writeMetadata(join(dir, processId), toMetadata(processId, startedAt))
    if (isStarted) writeFileSync(join(dir, processId, 'started'), '11 12 13 14\n')
    return processId
  }
  const second = await create(2, true)
  const first = await create(1, true)
  const notStarted = await create(3, false)
  const withoutMetadata = newId('process')
  mkdirSync(join(dir, withoutMetadata))
  mkdirSync(join(dir, `${newId('process')}.removing.1.2`))
  mkdirSync(join(dir, '.exited'))

  const removed: string[] = []
  const restored = await restoreMetadata(dir, async (path) => {
    removed.push(path)
    rmSync(path, { recursive: true })
  })
  t.same(
    restored.map(({ processId }) => processId),
    [first, second],
  )
  t.same(new Set(removed), new Set([notStarted, withoutMetadata].map((name) => join(dir, name))))
  t.same(readdirSync(dir).sort(), ['.exited', first, second].sort())
})
