// The rate limit of connection attempts.
import t from 'tap'
import { createAttemptLimit } from '../../../coordinator/tunnel/attempt-limit.ts'

t.test('limits a box that reconnects in a tight loop, and no other box', async (t) => {
  let now = 0
  const limit = createAttemptLimit({ now: () => now }, { burst: 3, refillMs: 3000 })
  t.same(
    [1, 2, 3, 4].map(() => limit.attempt('a')),
    [0, 0, 0, 1000],
  )
  t.equal(limit.attempt('b'), 0)
  now = 400
  t.equal(limit.attempt('a'), 600)
  now = 1000
  t.equal(limit.attempt('a'), 0)
  t.equal(limit.attempt('a'), 1000)
  now = 100_000
  t.same(
    [1, 2, 3].map(() => limit.attempt('a')),
    [0, 0, 0],
  )
  now = 0
  t.ok(limit.attempt('a') > 0, 'a clock that is set back does not refill the bucket')
})
