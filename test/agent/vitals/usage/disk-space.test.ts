// The disk space of a box is measured rarely: when the box has written, and for a bounded share of the time.
import { linkSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as settle } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { readProcess } from '../../../../agent/process-table.ts'
import { createDiskSpaceMeter } from '../../../../agent/vitals/usage/disk-space.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const MiB = 1024 * 1024

function setUp(t: Test, { durationMs = 100 } = {}) {
  let now = 1000
  const results: PromiseWithResolvers<number>[] = []
  const meter = createDiskSpaceMeter({
    directories: ['/home/box'],
    log: silentLog,
    monotonicNow: () => now,
    measure: (_directories, signal) => {
      const result = Promise.withResolvers<number>()
      signal.addEventListener('abort', () => result.reject(signal.reason))
      results.push(result)
      return { pid: 77, result: result.promise }
    },
  })
  t.teardown(() => meter.close())
  return {
    meter,
    runs: () => results.length,
    advance: (ms: number) => {
      now += ms
    },
    async finish(bytes: number | Error) {
      now += durationMs
      if (bytes instanceof Error) results.at(-1)?.reject(bytes)
      else results.at(-1)?.resolve(bytes)
      await settle()
    },
  }
}

t.test('measures at the start, and again a minute after the box has written', async (t) => {
  const { meter, runs, advance, finish } = setUp(t)
  t.equal(meter.usedBytes(), null)
  meter.update(0)
  t.same([runs(), meter.pid()], [1, 77])
  meter.update(100 * MiB)
  t.equal(runs(), 1, 'one at a time')
  await finish(500)
  t.same([meter.usedBytes(), meter.pid()], [500, undefined])
  advance(59_000)
  meter.update(200 * MiB)
  t.equal(runs(), 1)
  advance(1000)
  meter.update(200 * MiB)
  t.equal(runs(), 2)
  t.equal(meter.usedBytes(), 500, 'the last result, until there is a new one')
})

t.test('does not count what the agent writes: less than 1 MiB causes no measurement', async (t) => {
  const { meter, runs, advance, finish } = setUp(t)
  meter.update(5 * MiB)
  await finish(500)
  advance(600_000)
  meter.update(6 * MiB - 1)
  t.equal(runs(), 1)
  meter.update(6 * MiB)
  t.equal(runs(), 2)
})

t.test('finds deleted files within 15 minutes, also where writes are not counted', async (t) => {
  const { meter, runs, advance, finish } = setUp(t)
  meter.update(null)
  await finish(500)
  advance(899_000)
  meter.update(null)
  t.equal(runs(), 1)
  advance(1000)
  meter.update(null)
  t.equal(runs(), 2)
})

t.test('a measurement that takes long is repeated less often: at most 2 % of the time', async (t) => {
  const { meter, runs, advance, finish } = setUp(t, { durationMs: 20_000 })
  meter.update(0)
  await finish(500)
  advance(999_000)
  meter.update(900 * MiB)
  t.equal(runs(), 1)
  advance(1000)
  meter.update(900 * MiB)
  t.equal(runs(), 2)
})

t.test('keeps the last result after a failure, and tries again', async (t) => {
  const { meter, runs, advance, finish } = setUp(t)
  meter.update(0)
  await finish(500)
  advance(60_000)
  meter.update(2 * MiB)
  await finish(new Error('killed'))
  t.equal(meter.usedBytes(), 500)
  advance(60_000)
  meter.update(4 * MiB)
  t.equal(runs(), 3)
  await finish(700)
  t.equal(meter.usedBytes(), 700)
})

t.test('du: hard links count once, nested directories too, missing ones are omitted', async (t) => {
  const dir = createTempDir(t, 'disk')
  mkdirSync(join(dir, 'home'))
  mkdirSync(join(dir, 'state'))
  writeFileSync(join(dir, 'home', 'file'), Buffer.alloc(MiB, 1))
  linkSync(join(dir, 'home', 'file'), join(dir, 'home', 'link'))
  writeFileSync(join(dir, 'state', 'file'), Buffer.alloc(MiB, 1))
  const directories = ['home', 'state', 'missing', 'home/.'].map((name) => join(dir, name))
  const meter = createDiskSpaceMeter({ directories, log: silentLog })
  t.teardown(() => meter.close())
  meter.update(0)
  t.type(meter.pid(), 'number')
  const used = await waitUntil('du has finished', () => meter.usedBytes())
  t.ok(used >= 2 * MiB && used < 2 * MiB + 64 * 1024, `${used} bytes`)
})

t.test('close terminates a running du', async (t) => {
  const meter = createDiskSpaceMeter({ directories: ['/usr'], log: silentLog })
  meter.update(0)
  const pid = meter.pid()
  await meter.close()
  t.equal(meter.usedBytes(), null)
  await waitUntil('du has exited', () => pid !== undefined && readProcess(pid) === undefined)
})
