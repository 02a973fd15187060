import t from 'tap'
import { eventStream } from '../../../../agent/exec/stream/event-stream.ts'
import type { EventOptions } from '../../../../agent/exec/stream/produce-events.ts'
import { mixedBytes, seeded } from '../../../support/random.ts'
import { allEvents, eventReader, memoryProcess, outputOf, stillTime } from './support.ts'

const ALL: Pick<EventOptions, 'offsets' | 'streams' | 'encoding' | 'onError'> = {
  offsets: { stdout: 0, stderr: 0 },
  streams: ['stdout', 'stderr'],
  encoding: 'utf8',
  onError: () => undefined,
}

t.test('an ended process: attached, everything, exit', async (t) => {
  const { process, stdout, stderr, end } = memoryProcess()
  stdout.append('out\n')
  stderr.append('err €\n')
  end({ exitCode: 3 })
  t.strictSame(await allEvents(eventStream({ ...ALL, process })), [
    {
      id: '0:0',
      event: 'attached',
      data: { processId: process.processId, stdoutOffset: 0, stderrOffset: 0 },
    },
    { id: '4:0', event: 'stdout', data: { data: 'out\n', offset: 0, nextOffset: 4 } },
    { id: '4:8', event: 'stderr', data: { data: 'err €\n', offset: 0, nextOffset: 8 } },
    {
      id: '4:8',
      event: 'exit',
      data: { status: 'exited', exitCode: 3, signal: null, stdoutOffset: 4, stderrOffset: 8 },
    },
  ])
})

t.test('how it ended is told in the words of the stream', async (t) => {
  for (const [status, told] of [
    ['killed', 'killed'],
    ['timed_out', 'killed'],
    ['lost', 'lost'],
  ] as const) {
    const { process, end } = memoryProcess()
    end({ status, exitCode: null, signal: status === 'lost' ? null : 'TERM' })
    const last = (await allEvents(eventStream({ ...ALL, process }))).at(-1)
    t.match(last, { event: 'exit', data: { status: told, exitCode: null } })
  }
})

t.test('what is written later comes later, and exit only after the last of it', async (t) => {
  const { process, stdout, end } = memoryProcess()
  const events = eventReader(eventStream({ ...ALL, process }))
  t.match(await events.next(), { event: 'attached' })
  const first = events.next()
  stdout.append('one')
  t.match(await first, { event: 'stdout', data: { data: 'one' } })
  const second = events.next()
  stdout.append('two', true)
  end()
  t.match(await second, { event: 'stdout', data: { data: 'two', offset: 3 } })
  t.match(await events.next(), { event: 'exit', id: '6:0' })
  t.equal(await events.next(), undefined)
})

t.test('a character comes whole, however slowly it is written', async (t) => {
  const { process, stdout, end } = memoryProcess()
  const events = eventReader(eventStream({ ...ALL, process }))
  await events.next()
  const next = events.next()
  const [a, b, c, d] = Buffer.from('😀')
  stdout.append(Buffer.from([0x78, a ?? 0, b ?? 0]))
  t.match(await next, { id: '1:0', data: { data: 'x', offset: 0, nextOffset: 1 } })
  const whole = events.next()
  stdout.append(Buffer.from([c ?? 0]))
  stdout.append(Buffer.from([d ?? 0]))
  t.match(await whole, { id: '5:0', data: { data: '😀', offset: 1, nextOffset: 5 } })
  const rest = events.next()
  stdout.append(Buffer.from([0xe2, 0x82]))
  end()
  t.match(
    await rest,
    { id: '7:0', data: { data: '\ufffd', offset: 5, nextOffset: 7 } },
    'nothing more will come',
  )
  t.match(await events.next(), { event: 'exit', id: '7:0' })
})

t.test('a resume inside a character loses and repeats no byte', async (t) => {
  const { process, stdout, end } = memoryProcess()
  stdout.append('a😀b')
  end()
  const events = await allEvents(eventStream({ ...ALL, process, offsets: { stdout: 3, stderr: 0 } }))
  t.match(events[1], { event: 'stdout', data: { data: '\ufffd\ufffdb', offset: 3, nextOffset: 6 } })
})

t.test('read by any number of readers that come and go, every byte comes once', async (t) => {
  const seed = Number(process.env.TEST_SEED ?? 7)
  const random = seeded(seed)
  for (const encoding of ['utf8', 'base64'] as const) {
    const { process, stdout, stderr, end } = memoryProcess()
    const written = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }
    const read = { stdout: '', stderr: '' }
    const offsets = { stdout: 0, stderr: 0 }
    let steps = 0
    for (let ended = false; !ended; ) {
      const stream = eventStream({ ...ALL, encoding, process, offsets: { ...offsets } })
      const events = eventReader(stream)
      for (let left = 1 + Math.floor(random() * 6); left > 0; left--) {
        for (const [name, log] of [
          ['stdout', stdout],
          ['stderr', stderr],
        ] as const) {
          const bytes = mixedBytes(random, Math.floor(random() * (random() < 0.02 ? 100_000 : 20)))
          if (steps < 300) log.append(bytes)
          if (steps < 300) written[name] = Buffer.concat([written[name], bytes])
        }
        if (++steps === 300) end()
        const event = await events.next()
        if (event === undefined) break
        if (event.event === 'exit') ended = true
        if (event.event !== 'stdout' && event.event !== 'stderr') continue
        t.equal(event.data.offset, offsets[event.event])
        read[event.event] +=
          encoding === 'utf8' ? event.data.data : Buffer.from(event.data.data, 'base64').toString('hex')
        offsets[event.event] = event.data.nextOffset
        t.equal(event.id, `${offsets.stdout}:${offsets.stderr}`)
      }
      stream.destroy()
    }
    const whole = (bytes: Buffer) => bytes.toString(encoding === 'utf8' ? 'utf8' : 'hex')
    t.ok(read.stdout === whole(written.stdout), `stdout as ${encoding}, seed ${seed}`)
    t.ok(read.stderr === whole(written.stderr), `stderr as ${encoding}, seed ${seed}`)
    t.same([stdout.watchers(), stderr.watchers()], [0, 0])
  }
})

t.test('one stream alone: the other keeps its offset', async (t) => {
  const { process, stdout, stderr, end } = memoryProcess()
  stdout.append('out')
  stderr.append('err')
  end()
  const events = await allEvents(
    eventStream({ ...ALL, process, streams: ['stderr'], offsets: { stdout: 99, stderr: 1 } }),
  )
  t.match(
    events.map(({ id, event }) => `${id} ${event}`),
    ['99:1 attached', '99:3 stderr', '99:3 exit'],
  )
})

t.test('an offset past the end is moved to the end, and attached says so', async (t) => {
  const { process, stdout, end } = memoryProcess()
  stdout.append('abc')
  const events = eventReader(eventStream({ ...ALL, process, offsets: { stdout: 50, stderr: 0 } }))
  t.match(await events.next(), { id: '3:0', event: 'attached', data: { stdoutOffset: 3 } })
  const next = events.next()
  stdout.append('d')
  t.match(await next, { data: { data: 'd', offset: 3 } })
  end()
  t.match(await events.next(), { event: 'exit' })
})

t.test('where the head was given up, the offset says so', async (t) => {
  const { process, stdout, end } = memoryProcess({ keep: 4 })
  stdout.append('0123456789')
  end()
  const [, output, exit] = await allEvents(eventStream({ ...ALL, process }))
  t.match(output, { id: '10:0', data: { data: '6789', offset: 6, nextOffset: 10 } })
  t.match(exit, { event: 'exit', data: { stdoutOffset: 10 } })
})

t.test('a read that meets the head inside a character goes on from there', async (t) => {
  for (const ended of [true, false]) {
    const { process, stdout, end } = memoryProcess()
    const text = `${'a'.repeat(10)}€uro`
    stdout.append(text)
    if (ended) end()
    const { read, readNow } = stdout.log
    // As when the first ten bytes were given up after the reader had asked for the first eleven.
    const cut = { offset: 10, bytes: Buffer.from(text).subarray(10, 11) }
    stdout.log.read = async (from, max) => (from < 10 ? cut : read(from, max))
    stdout.log.readNow = (from, max) => (from < 10 ? cut : readNow(from, max))
    const stream = eventStream({ ...ALL, process })
    const events = eventReader(stream)
    t.match(await events.next(), { event: 'attached', id: '0:0' })
    t.match(await events.next(), { id: '16:0', data: { data: '€uro', offset: 10, nextOffset: 16 } })
    stream.destroy()
  }
})

t.test('15 seconds without an event: a heartbeat; after 10 minutes: reconnect', async (t) => {
  const { process, stdout } = memoryProcess()
  const { time, pass, timers } = stillTime()
  const stream = eventStream({ ...ALL, process, time })
  const events = eventReader(stream)
  await events.next()
  const waiting = async () => {
    while (timers() < 2) await new Promise(setImmediate)
  }
  let next = events.next()
  await waiting()
  pass(14_000)
  stdout.append('x')
  t.match(await next, { event: 'stdout' })
  next = events.next()
  await waiting()
  pass(14_000)
  stdout.append('y')
  t.match(await next, { event: 'stdout', data: { data: 'y' } }, 'an event starts the 15 seconds anew')
  next = events.next()
  await waiting()
  pass(14_000)
  await waiting()
  pass(1000)
  t.match(await next, { id: '2:0', event: 'heartbeat', data: {} })
  next = events.next()
  stdout.append('lost', true)
  await waiting()
  pass(15_000)
  t.match(await next, { event: 'heartbeat' })
  t.match(await events.next(), { event: 'stdout' }, 'a change that nobody told of is found with it')
  next = events.next()
  await waiting()
  pass(600_000)
  t.match(await next, { id: '6:0', event: 'reconnect', data: { stdoutOffset: 6, stderrOffset: 0 } })
  t.equal(await events.next(), undefined)
  t.equal(timers(), 0)
})

t.test('a reader that stalls has one buffer, and nothing is watched for it', async (t) => {
  const { process, stdout, stderr, end } = memoryProcess()
  const stream = eventStream({ ...ALL, process })
  stdout.append(Buffer.alloc(1_000_000, 'o'))
  stderr.append(Buffer.alloc(1_000_000, 'e'))
  stream.read(0)
  while (stream.readableLength < 90_000) await new Promise(setImmediate)
  const held = stream.readableLength
  t.ok(held < 250_000, `${held} bytes`)
  for (let i = 0; i < 50; i++) {
    stdout.append('more')
    await new Promise(setImmediate)
  }
  t.equal(stream.readableLength, held)
  t.same([stdout.watchers(), stderr.watchers()], [0, 0])
  end()
  const events = await allEvents(stream)
  t.equal(outputOf(events, 'stdout').nextOffset, 1_000_200)
  t.equal(outputOf(events, 'stderr').nextOffset, 1_000_000)
  const names = events.map(({ event }) => event).filter((event) => event !== 'attached' && event !== 'exit')
  t.same(names.slice(0, 10), Array(5).fill(['stdout', 'stderr']).flat(), 'both get the same share')
})

t.test('a log that cannot be read ends the stream with an error', async (t) => {
  const { process, stdout } = memoryProcess()
  let told: unknown
  const stream = eventStream({
    ...ALL,
    process,
    onError: (error) => {
      told = error
    },
  })
  const events = eventReader(stream)
  await events.next()
  const next = events.next()
  stdout.fail(Object.assign(new Error('gone'), { code: 'ENOENT' }))
  t.match(await next, { id: '0:0', event: 'error', data: { code: 'not_found', message: String } })
  t.equal(await events.next(), undefined)
  t.match(told, { message: 'gone' })
})

t.test('a thousand readers that left leave nothing behind', async (t) => {
  const { process, stdout, stderr, end } = memoryProcess()
  const { time, timers } = stillTime()
  for (let i = 0; i < 1000; i++) {
    const stream = eventStream({ ...ALL, process, time })
    await eventReader(stream).next()
    stream.read(0)
    if (i % 2) await new Promise(setImmediate)
    stream.destroy()
  }
  t.same([stdout.watchers(), stderr.watchers(), timers()], [0, 0, 0])
  end()
})
