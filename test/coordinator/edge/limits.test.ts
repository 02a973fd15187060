import t from 'tap'
import { createEdgeLimiter } from '../../../coordinator/edge/limits.ts'
import { ApiError } from '../../../shared/errors.ts'

const refusal = async (taking: Promise<unknown>) => {
  const error = await taking.then(
    () => null,
    (reason) => reason,
  )
  return error instanceof ApiError ? { code: error.code, retryAfter: error.headers['retry-after'] } : error
}
const refused = { code: 'rate_limited', retryAfter: '1' }

t.test('the ninth request at once is refused, for a token and for a box, until one has ended', async (t) => {
  const limiter = createEdgeLimiter({ requestsPerSecond: 1000, concurrency: 8, streams: 4 })
  const releases = await Promise.all(Array.from({ length: 8 }, (_, i) => limiter.acquire('token', `box${i}`)))
  t.match(await refusal(limiter.acquire('token', 'another box')), refused)
  t.equal(limiter.acquiredCount(), 8, 'a refused request holds nothing')
  releases[0]?.()
  const again = await limiter.acquire('token', 'box0')
  t.equal(limiter.acquiredCount(), 8)
  for (const release of [...releases, again]) release()
  t.equal(limiter.acquiredCount(), 0)

  const others = await Promise.all(Array.from({ length: 8 }, (_, i) => limiter.acquire(`token${i}`, 'box')))
  t.match(await refusal(limiter.acquire('token', 'box')), refused)
  for (const release of others) release()
})

t.test('a slot given back twice counts once', async (t) => {
  const limiter = createEdgeLimiter({ requestsPerSecond: 1000, concurrency: 1, streams: 4 })
  const first = await limiter.acquire('token', 'box')
  first()
  const second = await limiter.acquire('token', 'box')
  first()
  t.match(await refusal(limiter.acquire('token', 'box')), refused)
  second()
})

t.test('the twenty-first request of a second is refused, for a token and for a box', async (t) => {
  const ask = async (limiter: ReturnType<typeof createEdgeLimiter>, token: string, box: string) =>
    (await limiter.acquire(token, box))()
  const byToken = createEdgeLimiter({ requestsPerSecond: 20, concurrency: 8, streams: 4 })
  for (let i = 0; i < 20; i++) await ask(byToken, 'token', `box${i}`)
  t.match(await refusal(byToken.acquire('token', 'a fresh box')), refused)
  await ask(byToken, 'another token', 'a fresh box')

  const byBox = createEdgeLimiter({ requestsPerSecond: 20, concurrency: 8, streams: 4 })
  for (let i = 0; i < 20; i++) await ask(byBox, `token${i}`, 'box')
  t.match(await refusal(byBox.acquire('a fresh token', 'box')), refused)
})

t.test('the fifth stream of a token is refused; requests and other tokens go on', async (t) => {
  const clock = { time: 1_000_000, now: () => clock.time }
  const limiter = createEdgeLimiter({ requestsPerSecond: 1000, concurrency: 8, streams: 4 }, clock)
  const stream = { stream: true }
  const open = []
  for (let i = 0; i < 4; i++) {
    open.push(await limiter.acquire('token', `box${i}`, stream))
    clock.time += 60_000
  }
  const others = [await limiter.acquire('token', 'box'), await limiter.acquire('another', 'box', stream)]
  t.match(await refusal(limiter.acquire('token', 'box', stream)), {
    code: 'rate_limited',
    retryAfter: String(6 * 60 + 1),
  })
  t.equal(limiter.acquiredCount(), 6, 'a refused stream holds nothing')
  open[2]?.()
  others.push(await limiter.acquire('token', 'box', stream))
  for (let i = 0; i < 3; i++) others.push(await limiter.acquire('token', `box${i}`))
  t.match(await refusal(limiter.acquire('token', 'box')), refused, 'a stream holds one of the slots, too')
  for (const release of [...open, ...others]) release()
  t.equal(limiter.acquiredCount(), 0)
})

t.test('after Retry-After seconds the rate has room for one more', async (t) => {
  const limiter = createEdgeLimiter({ requestsPerSecond: 5, concurrency: 8, streams: 4 })
  const ask = async () => (await limiter.acquire('token', 'box'))()
  for (let round = 0; round < 2; round++) {
    for (;;) {
      const refusing = await refusal(ask())
      if (refusing === null) continue
      t.equal(refusing.code, 'rate_limited')
      await new Promise((resolve) => setTimeout(resolve, Number(refusing.retryAfter) * 1000))
      break
    }
    await t.resolves(ask())
  }
})
