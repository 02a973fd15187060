// The token buckets that limit what one box may send.
import t from 'tap'
import { createTokenBuckets } from '../../../coordinator/base/token-buckets.ts'

t.test('limits a box that reconnects in a tight loop, and no other box', async (t) => {
  let now = 0
  const buckets = createTokenBuckets({ now: () => now }, { capacity: 3, perSecond: 1 })
  t.same(
    [1, 2, 3, 4].map(() => buckets.take('a')),
    [0, 0, 0, 1000],
  )
  t.equal(buckets.take('b'), 0)
  now = 400
  t.equal(buckets.take('a'), 600)
  now = 1000
  t.equal(buckets.take('a'), 0)
  t.equal(buckets.take('a'), 1000)
  now = 100_000
  t.same(
    [1, 2, 3].map(() => buckets.take('a')),
    [0, 0, 0],
  )
  now = 0
  t.ok(buckets.take('a') > 0, 'a clock that is set back does not refill the bucket')
})

t.test('spends tokens that are missing, and returns when they are refilled', async (t) => {
  let now = 0
  const buckets = createTokenBuckets({ now: () => now }, { capacity: 10, perSecond: 10 })
  t.equal(buckets.spend('a', 10), 0)
  t.equal(buckets.spend('a', 5), 500)
  t.equal(buckets.take('a'), 600)
  t.equal(buckets.spend('a', 1000), 1000, 'at most the capacity is missing')
  t.equal(buckets.spend('b', 10), 0, 'boxes do not affect each other')
  now = 1000
  t.equal(buckets.spend('a', 0), 0)
  t.equal(buckets.spend('a', 1), 100)
  buckets.credit('a', 1000)
  t.equal(buckets.spend('a', 10), 0, 'credit fills the bucket')
  t.equal(buckets.spend('a', 1), 100, 'but no more than that')
})
