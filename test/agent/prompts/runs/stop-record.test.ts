// With the record of a stop, the next agent knows when the box began to stop.
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { StopRecord } from '../../../../agent/prompts/runs/stop-record.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { silentLog } from '../../../support/tunnel.ts'

t.test('the next agent reads the time of the first request, and forgets it', async (t) => {
  const dir = createTempDir(t, 'stop')
  let now = 1000
  const stop = new StopRecord(dir, { now: () => now }, silentLog)
  t.equal(stop.requestedAt, null)
  stop.expect()
  now = 2000
  stop.expect()
  t.equal(stop.requestedAt, 1000)

  const next = new StopRecord(dir, { now: () => now }, silentLog)
  t.equal(next.readPrevious(), 1000)
  t.equal(next.requestedAt, null, 'the box of the next agent does not stop')
  next.forgetPrevious()
  t.equal(next.readPrevious(), null)
})

t.test('the record of the current stop is kept', async (t) => {
  const dir = createTempDir(t, 'stop')
  const stop = new StopRecord(dir, { now: () => 1000 }, silentLog)
  stop.expect()
  stop.forgetPrevious()
  t.equal(stop.readPrevious(), 1000)
})

t.test('the stop counts also when its record cannot be written', async (t) => {
  const dir = join(createTempDir(t, 'stop'), 'missing')
  const stop = new StopRecord(dir, { now: () => 1000 }, silentLog)
  stop.expect()
  t.equal(stop.requestedAt, 1000)
  t.notOk(existsSync(dir))
})

t.test('a directory at the path of the record is replaced', async (t) => {
  const dir = createTempDir(t, 'stop')
  mkdirSync(join(dir, 'stopping'))
  const stop = new StopRecord(dir, { now: () => 1000 }, silentLog)
  t.equal(stop.readPrevious(), null)
  stop.expect()
  t.equal(stop.readPrevious(), 1000)
})
