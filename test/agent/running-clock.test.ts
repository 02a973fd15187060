// The clock of an agent stands still while the box is frozen, so a freeze uses up no time limit and is no idle time.
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { createActivityTracker } from '../../agent/activity-tracker.ts'
import { createRunningClock } from '../../agent/running-clock.ts'

const HOUR_MS = 3_600_000

function createBox(test: Test) {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  test.teardown(() => mock.timers.reset())
  let monotonicMs = 0
  const clock = createRunningClock(() => monotonicMs)
  test.teardown(clock.close)
  const run = (ms: number) => {
    for (let elapsed = 0; elapsed < ms; elapsed += 100) {
      monotonicMs += 100
      mock.timers.tick(100)
    }
  }
  return {
    clock,
    run,
    freeze(ms: number) {
      monotonicMs += ms
      // All timers that are due fire when the process is thawed.
      mock.timers.tick(ms)
    },
  }
}

t.test('a time limit does not count the time while the box is frozen', async (test) => {
  const { clock, run, freeze } = createBox(test)
  let calls = 0
  clock.startTimer(() => calls++, 10_000)
  const stopCancelled = clock.startTimer(() => test.fail('a stopped timer fires'), 10_000)
  run(4_000)
  freeze(HOUR_MS)
  run(3_000)
  freeze(HOUR_MS)
  test.equal(calls, 0)
  stopCancelled()
  // Up to one second of each freeze counts.
  run(900)
  test.equal(calls, 0)
  run(2_200)
  test.equal(calls, 1)
})

t.test('idle time does not count the time while the box is frozen', async (test) => {
  const { clock, run, freeze } = createBox(test)
  const activity = createActivityTracker(clock)
  run(60_000)
  test.equal(activity.idleSeconds(), 60)
  freeze(HOUR_MS)
  test.ok(activity.idleSeconds() <= 61)
})

t.test('reports how long the box was frozen', async (test) => {
  const { clock, run, freeze } = createBox(test)
  const frozen: number[] = []
  const unsubscribe = clock.onThaw((ms) => frozen.push(ms))
  run(5_000)
  freeze(HOUR_MS)
  run(5_000)
  unsubscribe()
  freeze(HOUR_MS)
  test.equal(frozen.length, 1)
  test.ok(Math.abs((frozen[0] ?? 0) - HOUR_MS) <= 1000)
})
