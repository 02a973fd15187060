// The sampler runs its tasks at aligned times, also when timers are late and clocks are set.
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { createSampler } from '../../../agent/vitals/sampler.ts'
import { silentLog } from '../../support/tunnel.ts'
import { createFakeTime } from './fake-sampler-time.ts'

const START = Date.parse('2026-01-31T03:14:07.300Z')
const seconds = (text: string) => Date.parse(`2026-01-31T${text}Z`)

function setUp(t: Test, { log = silentLog, everySeconds = 30, run = () => {} }: SetUp = {}) {
  const time = createFakeTime(START)
  const sampler = createSampler({ ...time, log })
  t.teardown(() => sampler.close())
  const runs: { at: number; now: number }[] = []
  sampler.add({
    ...{ name: 'test', everySeconds },
    run: (at) => {
      runs.push({ at, now: time.clock.now() })
      return run()
    },
  })
  return { time, sampler, runs }
}
type SetUp = { log?: typeof silentLog; everySeconds?: number; run?: () => void | Promise<void> }

t.test('runs a task at the multiples of its interval', async (t) => {
  const { time, runs } = setUp(t)
  await time.advance(90_000)
  t.same(
    runs,
    ['03:14:30', '03:15:00', '03:15:30'].map((text) => ({ at: seconds(text), now: seconds(text) })),
  )
})

t.test('one timer serves tasks with different intervals', async (t) => {
  const { time, sampler, runs } = setUp(t, { everySeconds: 1 })
  const minutes: number[] = []
  sampler.add({ name: 'minute', everySeconds: 60, run: (at) => void minutes.push(at) })
  await time.advance(120_000)
  t.equal(runs.length, 120)
  t.same(minutes, [seconds('03:15:00'), seconds('03:16:00')])
})

t.test('a late timer runs the task once, for the time at which it was due', async (t) => {
  const { time, runs } = setUp(t)
  await time.advance(22_000)
  await time.block(5_000)
  t.same(runs, [{ at: seconds('03:14:30'), now: START + 27_000 }])
  await time.block(100_000)
  t.same(runs.slice(1), [{ at: seconds('03:16:00'), now: START + 127_000 }], 'missed times are not repeated')
  await time.advance(20_000)
  t.equal(runs.at(-1)?.at, seconds('03:16:30'))
})

t.test('after the clock was set, the task waits for its next aligned time', async (t) => {
  const { time, runs } = setUp(t)
  await time.advance(30_000)
  t.equal(runs.length, 1)
  time.jump(3_600_000)
  await time.advance(2_000)
  t.equal(runs.length, 1, 'forward: no sample for a time that has not passed')
  await time.advance(28_000)
  t.same(
    runs.slice(1).map(({ at }) => at),
    [seconds('04:15:00')],
  )
  time.jump(-3_600_000)
  await time.advance(30_000)
  t.same(
    runs.slice(2).map(({ at }) => at),
    [seconds('03:15:30')],
    'back: samples continue at once',
  )
})

t.test('a task never overlaps itself, and the other tasks continue', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const { time, sampler, runs } = setUp(t, { everySeconds: 1, run: () => promise })
  let others = 0
  sampler.add({ name: 'other', everySeconds: 1, run: () => void others++ })
  await time.advance(10_000)
  t.same([runs.length, others], [1, 10])
  resolve()
  await time.advance(1_000)
  t.equal(runs.length, 2)
})

t.test('logs a failing task once, and again after it succeeded', async (t) => {
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  let failing = true
  const run = () => {
    if (failing) throw new Error('no /proc')
  }
  const { time, runs } = setUp(t, { log, everySeconds: 1, run })
  await time.advance(5_000)
  t.equal(runs.length, 5, 'it is tried again')
  t.equal(lines.length, 1)
  failing = false
  await time.advance(1_000)
  failing = true
  await time.advance(2_000)
  t.equal(lines.length, 2)
})

t.test('close waits for a running task, and no task runs afterwards', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const { time, sampler, runs } = setUp(t, { everySeconds: 1, run: () => promise })
  await time.advance(1_000)
  let closed = false
  const closing = sampler.close().then(() => {
    closed = true
  })
  await time.advance(5_000)
  t.equal(closed, false)
  resolve()
  await closing
  t.equal(runs.length, 1)
})
