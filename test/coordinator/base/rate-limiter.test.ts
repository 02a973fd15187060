// The rate limiter counts requests per key, and reports when another request is allowed.
import t from 'tap'
import { createRateLimiter, rejectLimited } from '../../../coordinator/base/rate-limiter.ts'
import { waitUntil } from '../../support/wait-until.ts'

t.test('each key has its own limit', async (t) => {
  const limiter = createRateLimiter({ requests: 2, seconds: 600 })
  t.same([await limiter.count('a'), await limiter.count('a')], [0, 0])
  const retryAfterMs = await limiter.count('a')
  t.ok(retryAfterMs > 590_000 && retryAfterMs <= 600_000, String(retryAfterMs))
  t.equal(await limiter.count('b'), 0)
})

t.test('the key is allowed again after the window', async (t) => {
  const limiter = createRateLimiter({ requests: 1, seconds: 0.2 })
  await limiter.count('a')
  t.ok(await waitUntil('the key is allowed', async () => (await limiter.count('a')) === 0))
})

t.test('Retry-After is in whole seconds, at least one', async (t) => {
  for (const [ms, seconds] of [
    [1, 1],
    [1000, 1],
    [1001, 2],
    [-5, 1],
  ] as const)
    t.throws(() => rejectLimited(ms, 'Too many requests.'), {
      code: 'rate_limited',
      message: `Too many requests. Try again in ${seconds} s.`,
      headers: { 'retry-after': String(seconds) },
    })
})
