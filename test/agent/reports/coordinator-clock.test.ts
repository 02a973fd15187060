// The agent's estimate of the coordinator's time.
import t from 'tap'
import { createCoordinatorClock } from '../../../agent/reports/coordinator-clock.ts'

function setUp() {
  let now = 1_000_000_000
  const clock = createCoordinatorClock({ now: () => now })
  return {
    clock,
    offset: () => clock.now() - now,
    /** An acknowledgement from a coordinator whose clock is `ms` ahead. */
    observe: (ms: number) => clock.observe(now + ms),
    set: (ms: number) => {
      now += ms
    },
  }
}

t.test('is the clock of the box while it differs by less than 2 seconds', async (t) => {
  const { offset, observe } = setUp()
  t.equal(offset(), 0)
  for (const ms of [1900, 1900, -1900, -1900]) {
    observe(ms)
    t.equal(offset(), 0)
  }
})

t.test('follows the coordinator when two acknowledgements agree', async (t) => {
  const { offset, observe } = setUp()
  observe(3_600_000)
  observe(3_600_200)
  t.equal(offset(), 3_600_200)
  observe(3_599_900)
  t.equal(offset(), 3_600_200, 'network delays do not move it')
  observe(100)
  observe(100)
  t.equal(offset(), 0, 'the clock of the box was corrected')
})

t.test('ignores a single delayed acknowledgement', async (t) => {
  const { offset, observe } = setUp()
  observe(0)
  observe(-30_000)
  t.equal(offset(), 0)
  observe(-100)
  observe(-30_000)
  t.equal(offset(), 0)
})

t.test('corrects a clock that was set while the agent runs', async (t) => {
  const { offset, observe, set } = setUp()
  observe(0)
  set(86_400_000)
  observe(-86_400_000)
  observe(-86_400_000)
  t.equal(offset(), -86_400_000)
})
