// The frames of an output stream: order, offsets, character boundaries, heartbeats, resuming, cleanup.
import t from 'tap'
import type { OutputTimes } from '../../../../agent/exec/detached/output-times.ts'
import { isOutput } from '../../../../shared/stream-frames.ts'
import { createSeededRandom, randomMalformedUtf8 } from '../../../support/random.ts'
import {
  collect,
  createFakeTime,
  createMemoryProcess,
  joinOutput,
  openFrames,
  readAllFrames,
  startOf,
} from './support.ts'

const at = (stdoutOffset: number, stderrOffset = 0) => ({ stdoutOffset, stderrOffset })

t.test('sends attached, all output and exit for an exited process', async (t) => {
  const { process, stdout, stderr, exit } = createMemoryProcess()
  stdout.append('out\n')
  stderr.append('err €\n')
  exit({ exitCode: 3 })
  t.strictSame(await readAllFrames(process), [
    { event: 'attached', ...at(0, 0), processId: process.processId },
    { event: 'stdout', ...at(4, 0), bytes: Buffer.from('out\n') },
    { event: 'stderr', ...at(4, 8), bytes: Buffer.from('err €\n') },
    { event: 'exit', ...at(4, 8), status: 'exited', exitCode: 3, signal: null, timedOut: false },
  ])
})

t.test('the exit frame has status killed, also after the time limit, or lost', async (t) => {
  for (const [status, expected] of [
    ['killed', 'killed'],
    ['timed_out', 'killed'],
    ['lost', 'lost'],
  ] as const) {
    const { process, exit } = createMemoryProcess()
    exit({ status, exitCode: null, signal: status === 'lost' ? null : 'TERM' })
    const timedOut = status === 'timed_out'
    t.match((await readAllFrames(process)).at(-1), { event: 'exit', status: expected, timedOut })
  }
})

t.test('sends new output when it is written, and the exit frame after all output', async (t) => {
  const { process, stdout, exit } = createMemoryProcess()
  const { next } = openFrames(process)
  t.match(await next(), { event: 'attached' })
  const first = next()
  stdout.append('one')
  t.match(await first, { event: 'stdout', bytes: Buffer.from('one') })
  const second = next()
  stdout.appendSilently('two')
  exit()
  t.match(await second, { event: 'stdout', ...at(6), bytes: Buffer.from('two') })
  t.match(await next(), { event: 'exit', ...at(6) })
  t.equal(await next(), undefined)
})

t.test('with encoding utf8 no frame splits a character, however slowly its bytes are written', async (t) => {
  const { process, stdout, exit } = createMemoryProcess()
  const { next } = openFrames(process)
  await next()
  let pending = next()
  const [a, b, c, d] = Buffer.from('😀')
  stdout.append(Buffer.from([0x78, a ?? 0, b ?? 0]))
  t.match(await pending, { ...at(1), bytes: Buffer.from('x') })
  pending = next()
  stdout.append(Buffer.from([c ?? 0]))
  stdout.append(Buffer.from([d ?? 0]))
  t.match(await pending, { ...at(5), bytes: Buffer.from('😀') })
  pending = next()
  stdout.append(Buffer.from([0xe2, 0x82]))
  exit()
  t.match(
    await pending,
    { ...at(7), bytes: Buffer.from([0xe2, 0x82]) },
    'an incomplete character before the exit',
  )
  t.match(await next(), { event: 'exit', ...at(7) })
})

t.test('resuming inside a character neither loses nor repeats a byte', async (t) => {
  const { process, stdout, exit } = createMemoryProcess()
  stdout.append('a😀b')
  exit()
  const frames = await readAllFrames(process, { offsets: { stdout: 3, stderr: 0 } })
  t.match(frames[1], { event: 'stdout', ...at(6), bytes: Buffer.from('a😀b').subarray(3) })
})

t.test('readers that disconnect and resume at random get every byte once', async (t) => {
  const seed = Number(process.env.TEST_SEED ?? 7)
  const random = createSeededRandom(seed)
  for (const encoding of ['utf8', 'base64'] as const) {
    const { process, stdout, stderr, exit, exitListeners } = createMemoryProcess()
    const written = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }
    const read = { stdout: '', stderr: '' }
    const decoded = encoding === 'utf8' ? 'utf8' : 'hex'
    const offsets = { stdout: 0, stderr: 0 }
    let steps = 0
    for (let hasExited = false; !hasExited; ) {
      const reader = openFrames(process, { encoding, offsets: { ...offsets } })
      for (let left = 1 + Math.floor(random() * 6); left > 0; left--) {
        for (const [name, log] of [
          ['stdout', stdout],
          ['stderr', stderr],
        ] as const) {
          const bytes = randomMalformedUtf8(random, Math.floor(random() * (random() < 0.02 ? 100_000 : 20)))
          if (steps >= 300) continue
          log.append(bytes)
          written[name] = Buffer.concat([written[name], bytes])
        }
        if (++steps === 300) exit()
        const frame = await reader.next()
        if (frame === undefined) break
        if (frame.event === 'exit') hasExited = true
        if (!isOutput(frame)) continue
        t.equal(startOf(frame), offsets[frame.event])
        read[frame.event] += frame.bytes.toString(decoded)
        offsets[frame.event] += frame.bytes.length
        t.match(frame, at(offsets.stdout, offsets.stderr))
      }
      await reader.close()
    }
    t.ok(read.stdout === written.stdout.toString(decoded), `stdout as ${encoding}, seed ${seed}`)
    t.ok(read.stderr === written.stderr.toString(decoded), `stderr as ${encoding}, seed ${seed}`)
    t.same([stdout.watchers(), stderr.watchers(), exitListeners()], [0, 0, 0])
  }
})

t.test('with one stream requested, the offset of the other stays unchanged', async (t) => {
  const { process, stdout, stderr, exit } = createMemoryProcess()
  stdout.append('out')
  stderr.append('err')
  exit()
  const frames = await readAllFrames(process, { streams: ['stderr'], offsets: { stdout: 99, stderr: 1 } })
  t.match(frames, [
    { event: 'attached', ...at(99, 1) },
    { event: 'stderr', ...at(99, 3) },
    { event: 'exit', ...at(99, 3) },
  ])
})

t.test('an offset beyond the end is moved to the end, as the attached frame reports', async (t) => {
  const { process, stdout, exit } = createMemoryProcess()
  stdout.append('abc')
  const { next } = openFrames(process, { offsets: { stdout: 50, stderr: 0 } })
  t.match(await next(), { event: 'attached', ...at(3) })
  const pending = next()
  stdout.append('d')
  t.match(await pending, { ...at(4), bytes: Buffer.from('d') })
  exit()
  t.match(await next(), { event: 'exit' })
})

t.test('output continues after a discarded head', async (t) => {
  const { process, stdout, exit } = createMemoryProcess({ maxBytes: 4 })
  stdout.append('0123456789')
  exit()
  const [, output, last] = await readAllFrames(process)
  t.match(output, { ...at(10), bytes: Buffer.from('6789') })
  t.match(last, { event: 'exit', ...at(10) })
})

t.test('after the head is discarded during a read, a frame starts with a whole character', async (t) => {
  for (const hasExited of [true, false]) {
    const { process, stdout, exit } = createMemoryProcess()
    const text = `${'a'.repeat(10)}€uro`
    stdout.append(text)
    if (hasExited) exit()
    const { read } = stdout.log
    // The first ten bytes were discarded during a read of the first eleven.
    stdout.log.read = async (from, max) =>
      from < 10 ? { offset: 10, bytes: Buffer.from(text).subarray(10, 11) } : read(from, max)
    const reader = openFrames(process)
    t.match(await reader.next(), { event: 'attached', ...at(0) })
    t.match(await reader.next(), { ...at(16), bytes: Buffer.from('€uro') })
    await reader.close()
  }
})

t.test('sends a heartbeat after 15 seconds without a frame, and reconnect after 10 minutes', async (t) => {
  const { process, stdout } = createMemoryProcess()
  const { time, advance, timers } = createFakeTime()
  const { next } = openFrames(process, { time })
  await next()
  const isWaiting = async () => {
    while (timers() === 0) await new Promise(setImmediate)
  }
  let pending = next()
  await isWaiting()
  advance(14_000)
  stdout.append('x')
  t.match(await pending, { event: 'stdout' })
  pending = next()
  await isWaiting()
  advance(14_000)
  stdout.append('y')
  t.match(await pending, { event: 'stdout', bytes: Buffer.from('y') }, 'output restarts the 15 seconds')
  pending = next()
  await isWaiting()
  advance(15_000)
  t.match(await pending, { event: 'heartbeat', ...at(2) })
  pending = next()
  await isWaiting()
  stdout.appendSilently('lost')
  advance(15_000)
  t.match(await pending, { event: 'stdout' }, 'a change that inotify missed is found at the next heartbeat')
  pending = next()
  await isWaiting()
  advance(600_000)
  t.match(await pending, { event: 'reconnect', ...at(6) })
  t.equal(await next(), undefined)
  t.equal(timers(), 0)
})

t.test('neither reads nor watches the logs while the reader is stalled', async (t) => {
  const { process, stdout, stderr, exit } = createMemoryProcess()
  const reader = openFrames(process)
  await reader.next()
  const pending = reader.next()
  stdout.append('first')
  await pending
  let reads = 0
  const { read } = stdout.log
  stdout.log.read = (from, max) => {
    reads += 1
    return read(from, max)
  }
  for (let i = 0; i < 50; i++) {
    stdout.append(Buffer.alloc(20_000, 'o'))
    stderr.append(Buffer.alloc(20_000, 'e'))
    await new Promise(setImmediate)
  }
  t.equal(reads, 0)
  t.same([stdout.watchers(), stderr.watchers()], [0, 0])
  exit()
  const frames = await collect(reader.frames)
  t.equal(joinOutput(frames, 'stdout', 5).offset, 1_000_005)
  t.equal(joinOutput(frames, 'stderr').offset, 1_000_000)
  const order = frames.slice(0, 10).map(({ event }) => event)
  t.same(order, Array(5).fill(['stderr', 'stdout']).flat(), 'both streams alternate')
})

t.test('a log that cannot be read ends the stream with an error frame', async (t) => {
  const { process, stdout } = createMemoryProcess()
  let reported: unknown
  const { next } = openFrames(process, {
    onError: (error) => {
      reported = error
    },
  })
  await next()
  const pending = next()
  stdout.fail(Object.assign(new Error('no such file'), { code: 'ENOENT' }))
  t.match(await pending, { event: 'error', ...at(0), code: 'not_found', message: String })
  t.equal(await next(), undefined)
  t.match(reported, { message: 'no such file' })
})

t.test('a thousand disconnected readers leave no watcher, listener or timer behind', async (t) => {
  const { process, stdout, stderr, exitListeners } = createMemoryProcess()
  const { time, timers } = createFakeTime()
  for (let i = 0; i < 1000; i++) {
    const reader = openFrames(process, { time })
    await reader.next()
    const pending = reader.next()
    if (i % 2) await new Promise(setImmediate)
    await reader.close()
    await pending
  }
  t.same([stdout.watchers(), stderr.watchers(), exitListeners(), timers()], [0, 0, 0, 0])
})

/** Times of fixed records; see output-times.ts. */
function createTimes(records: readonly { at: number; offset: number }[]): OutputTimes {
  const indexOf = (offset: number) => records.findLastIndex((record) => record.offset <= offset)
  const limit = (offset: number, length: number, encoding: 'utf8' | 'base64') => {
    const end = records[indexOf(offset) + 1]?.offset ?? Number.POSITIVE_INFINITY
    return Math.min(length, Math.max(end - offset, encoding === 'utf8' ? 4 : 1))
  }
  return {
    getOffsetSince: (time) => records.find(({ at }) => at >= time)?.offset ?? Number.POSITIVE_INFINITY,
    limitRead: limit,
    limitChunk: (offset, length, encoding) => ({
      length: limit(offset, length, encoding),
      at: records[indexOf(offset)]?.at ?? null,
    }),
  }
}

t.test('with timestamps, each output frame has one time', async (t) => {
  const times = createTimes([
    { at: 1000, offset: 2 },
    { at: 2000, offset: 4 },
  ])
  const { process, stdout, exit } = createMemoryProcess({ openTimes: () => times })
  stdout.append('aabbcc')
  exit()
  const frames = await readAllFrames(process, { timestamps: true, encoding: 'base64' })
  t.match(frames, [
    { event: 'attached', hasTimes: true },
    { event: 'stdout', at: null, bytes: Buffer.from('aa') },
    { event: 'stdout', at: 1000, bytes: Buffer.from('bb') },
    { event: 'stdout', at: 2000, bytes: Buffer.from('cc') },
    { event: 'exit' },
  ])
  t.notOk((await readAllFrames(process)).some((frame) => 'at' in frame || 'hasTimes' in frame))
})

t.test('with timestamps, no byte is lost and no character is split', async (t) => {
  const text = 'a😀€é'.repeat(50)
  const size = Buffer.byteLength(text)
  const times = createTimes(Array.from({ length: size }, (_, offset) => ({ at: 1000 + offset, offset })))
  const { process, stdout, exit } = createMemoryProcess({ openTimes: () => times })
  stdout.append(text)
  exit()
  const output = (await readAllFrames(process, { timestamps: true })).filter(isOutput)
  t.equal(output.map(({ bytes }) => bytes.toString()).join(''), text)
  t.ok(output.length > size / 8)
})

t.test('since moves the start forward, never back', async (t) => {
  const times = createTimes([
    { at: 1000, offset: 0 },
    { at: 2000, offset: 4 },
  ])
  const { process, stdout, exit } = createMemoryProcess({ openTimes: () => times })
  stdout.append('aaaabbbb')
  exit()
  const readFrom = async (since: number, offset: number) => {
    const frames = await readAllFrames(process, { since, offsets: { stdout: offset, stderr: 0 } })
    t.match(frames[0], { event: 'attached', hasTimes: true })
    return Buffer.concat(frames.filter(isOutput).map(({ bytes }) => bytes)).toString()
  }
  t.equal(await readFrom(500, 0), 'aaaabbbb')
  t.equal(await readFrom(1500, 0), 'bbbb')
  t.equal(await readFrom(1500, 6), 'bb')
  t.equal(await readFrom(2500, 0), '')
})

t.test('without times, since and timestamps send the whole output', async (t) => {
  const { process, stdout, exit } = createMemoryProcess()
  stdout.append('a')
  exit()
  t.match(await readAllFrames(process, { since: 5000, timestamps: true }), [
    { event: 'attached', hasTimes: false },
    { event: 'stdout', at: null, bytes: Buffer.from('a') },
    { event: 'exit' },
  ])
})
