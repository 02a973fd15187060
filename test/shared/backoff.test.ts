// Delays of exponential backoff: the bound and the two kinds of jitter.
import t from 'tap'
import { backoffDelay, equalJitter, fullJitter } from '../../shared/backoff.ts'

const settings = { baseMs: 500, maxMs: 30_000 }
const randomMax = () => 0.999999
const randomMin = () => 0

t.test('the upper bound of the delay doubles with each failure; the lower bound is 0', async (t) => {
  const upperBounds = [0, 1, 2, 3, 4, 5, 6, 7, 1000, 10_000].map(
    (failures) => backoffDelay(failures, settings, fullJitter, randomMax) + 1,
  )
  t.same(upperBounds, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 30_000])
  t.equal(backoffDelay(5, settings, fullJitter, randomMin), 0)
})

t.test('equal jitter waits at least half of the bound', async (t) => {
  const getDelays = (random: () => number) =>
    [0, 1, 10_000].map((failures) => backoffDelay(failures, settings, equalJitter, random))
  t.same(getDelays(randomMin), [250, 500, 15_000])
  t.same(getDelays(randomMax), [499, 999, 29_999])
})
