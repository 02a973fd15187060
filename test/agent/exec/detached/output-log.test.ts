// Reading a log by offset while it grows and its head is discarded.
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { firstRetainedOffset } from '../../../../agent/exec/detached/log-bounds.ts'
import { openOutputLog } from '../../../../agent/exec/detached/output-log.ts'
import { createSeededRandom, randomMalformedUtf8 } from '../../../support/random.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const MAX_BYTES = 65_536
const MiB = 1024 * 1024

function createLog(t: Test, maxBytes = MAX_BYTES) {
  const path = join(createTempDir(t, 'log'), 'stdout')
  writeFileSync(path, '')
  let finalSize: number | null = null
  const log = openOutputLog({ path, maxBytes, finalSize: () => finalSize })
  return {
    log,
    append: (bytes: string | Buffer) => appendFileSync(path, bytes),
    setFinalSize(size: number) {
      finalSize = size
    },
  }
}

t.test('reads from an offset up to the end, at most the requested number of bytes', async (t) => {
  const { log, append } = createLog(t)
  append('one two')
  t.same(await log.read(0, 100), { offset: 0, bytes: Buffer.from('one two') })
  t.same(await log.read(4, 2), { offset: 4, bytes: Buffer.from('tw') })
  t.match(await log.read(7, 100), { offset: 7, bytes: { length: 0 } })
  t.match(await log.read(1000, 100), { offset: 1000, bytes: { length: 0 } })
})

t.test('after the exit, later bytes are not part of the log', async (t) => {
  const { log, append, setFinalSize } = createLog(t)
  append('output, then background output')
  setFinalSize(6)
  t.equal(await log.size(), 6)
  t.equal((await log.read(0, 100)).bytes.toString(), 'output')
})

t.test('never returns discarded bytes', async (t) => {
  const random = createSeededRandom(3)
  const { log, append } = createLog(t)
  let all = Buffer.alloc(0)
  for (let step = 0; step < 400; step++) {
    const more = randomMalformedUtf8(random, Math.floor(random() * 2000))
    append(more)
    all = Buffer.concat([all, more])
    const from = Math.floor(random() * all.length)
    const max = 1 + Math.floor(random() * 100_000)
    const { offset, bytes } = await log.read(from, max)
    if (bytes.length === 0) continue
    const head = firstRetainedOffset(all.length, MAX_BYTES)
    t.ok(offset >= Math.max(from, head), `offset ${offset}, from ${from}, head ${head}`)
    t.ok(bytes.equals(all.subarray(offset, offset + bytes.length)))
  }
})

t.test('a read does not return bytes that are discarded while it runs', async (t) => {
  // Far enough from the end for an asynchronous read.
  const { log, append } = createLog(t, MiB)
  append(Buffer.alloc(MiB, 'a'))
  const reading = log.read(0, MiB)
  append(Buffer.alloc(MiB, 'b'))
  const { offset, bytes } = await reading
  t.equal(offset, firstRetainedOffset(2 * MiB, MiB))
  t.ok(bytes.every((byte) => byte === 'b'.charCodeAt(0)))
})

t.test('notifies watchers of writes until they unsubscribe', async (t) => {
  const { log, append } = createLog(t)
  let changes = 0
  const stop = log.watch(() => {
    changes += 1
  })
  append('x')
  await waitUntil('the watcher was notified', () => changes > 0)
  stop()
  const before = changes
  append('y')
  await log.read(0, 1)
  t.equal(changes, before)
})

t.test('rejects with ENOENT when the log was deleted', async (t) => {
  const log = openOutputLog({
    path: join(createTempDir(t, 'log'), 'none'),
    maxBytes: MAX_BYTES,
    finalSize: () => null,
  })
  t.equal(await log.size(), 0)
  await t.rejects(log.read(0, 1), { code: 'ENOENT' })
})
