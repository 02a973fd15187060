// Moving the memory of a frozen box to swap: what is written to its cgroups.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createReclaimer } from '../../../../coordinator/providers/local/reclaim.ts'
import { newUuid } from '../../../../shared/ids.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const log = { debug: () => undefined }

function createCgroup(test: Test, files: Record<string, string>) {
  const dir = join(createTempDir(test, 'cgroup'), 'box')
  mkdirSync(dir)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text)
  return { dir, read: (name: string) => readFileSync(join(dir, name), 'utf8').trim() }
}

t.test('reclaims all memory of a version 2 cgroup, and forbids swap again afterwards', async (test) => {
  const { dir, read } = createCgroup(test, {
    'memory.current': '123456\n',
    'memory.reclaim': '',
    'memory.swap.max': '0',
  })
  const reclaimer = createReclaimer({ log, hasSwap: () => true })
  const boxId = newUuid()
  reclaimer.start(boxId, ['/nonexistent', dir])
  test.equal(read('memory.swap.max'), 'max')
  await waitUntil('the memory is reclaimed', () => read('memory.reclaim') === '123456')
  reclaimer.end(boxId, [dir])
  test.equal(read('memory.swap.max'), '0')
  await reclaimer.close()
})

t.test('reclaims the memory of a version 1 cgroup', async (test) => {
  const { dir, read } = createCgroup(test, { 'memory.force_empty': '' })
  const reclaimer = createReclaimer({ log, hasSwap: () => true })
  reclaimer.start(newUuid(), [dir])
  await waitUntil('the memory is reclaimed', () => read('memory.force_empty') === '0')
  await reclaimer.close()
})

t.test('writes nothing without swap', async (test) => {
  const { dir, read } = createCgroup(test, {
    'memory.current': '1',
    'memory.reclaim': '',
    'memory.swap.max': '0',
  })
  const reclaimer = createReclaimer({ log, hasSwap: () => false })
  reclaimer.start(newUuid(), [dir])
  await reclaimer.close()
  test.equal(read('memory.reclaim'), '')
  test.equal(read('memory.swap.max'), '0')
})

t.test('a failure is not an error, and a write that does not return ends with the freeze', async (test) => {
  const failing = createCgroup(test, { 'memory.current': '1' })
  mkdirSync(join(failing.dir, 'memory.reclaim'))
  const reclaimer = createReclaimer({ log, hasSwap: () => true })
  const boxId = newUuid()
  reclaimer.start(boxId, [failing.dir])
  reclaimer.end(boxId, [failing.dir])

  // Opening a FIFO for writing waits for a reader.
  const blocking = createCgroup(test, { 'memory.current': '1' })
  spawnSync('mkfifo', [join(blocking.dir, 'memory.reclaim')])
  reclaimer.start(boxId, [blocking.dir])
  await reclaimer.close()
  test.pass('close() returns')
})
