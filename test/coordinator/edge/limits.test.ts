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
  const releases = await Promise.all(Array.from({ length: 8 }, (_, i) => limiter.take('token', `box${i}`)))
  t.match(await refusal(limiter.take('token', 'another box')), refused)
  t.equal(limiter.held(), 8, 'a refused request holds nothing')
  releases[0]?.()
  const again = await limiter.take('token', 'box0')
  t.equal(limiter.held(), 8)
  for (const release of [...releases, again]) release()
  t.equal(limiter.held(), 0)

  const others = await Promise.all(Array.from({ length: 8 }, (_, i) => limiter.take(`token${i}`, 'box')))
  t.match(await refusal(limiter.take('token', 'box')), refused)
  for (const release of others) release()
})

t.test('a slot given back twice counts once', async (t) => {
  const limiter = createEdgeLimiter({ requestsPerSecond: 1000, concurrency: 1, streams: 4 })
  const first = await limiter.take('token', 'box')
  first()
  const second = await limiter.take('token', 'box')
  first()
  t.match(await refusal(limiter.take('token', 'box')), refused)
  second()
})

t.test('the twenty-first request of a second is refused, for a token and for a box', async (t) => {
  const ask = async (limiter: ReturnType<typeof createEdgeLimiter>, token: string, box: string) =>
    (await limiter.take(token, box))()
  const byToken = createEdgeLimiter({ requestsPerSecond: 20, concurrency: 8, streams: 4 })
  for (let i = 0; i < 20; i++) await ask(byToken, 'token', `box${i}`)
  t.match(await refusal(byToken.take('token', 'a fresh box')), refused)
  await ask(byToken, 'another token', 'a fresh box')

  const byBox = createEdgeLimiter({ requestsPerSecond: 20, concurrency: 8, streams: 4 })
  for (let i = 0; i < 20; i++) await ask(byBox, `token${i}`, 'box')
  t.match(await refusal(byBox.take('a fresh token', 'box')), refused)
})
