// The edge's limits: requests per second, concurrent requests and concurrent streams.
import t from 'tap'
import {
  createEdgeLimiter,
  type EdgeLimiter,
  type EdgeLimits,
  FORWARDS_PER_SECOND,
} from '../../../coordinator/edge/limits.ts'
import { ApiError } from '../../../shared/errors.ts'

/** The code and Retry-After of a rejection; null when `acquiring` resolves. */
const rejectionOf = async (acquiring: Promise<unknown>) => {
  const error = await acquiring.then(
    () => null,
    (reason) => reason,
  )
  return error instanceof ApiError ? { code: error.code, retryAfter: error.headers['retry-after'] } : error
}
const rateLimited = { code: 'rate_limited', retryAfter: '1' }

const key = (credentialId: string, userId: string | null = null, workspaceId = 'ws') => ({
  credentialId,
  userId,
  workspaceId,
})

const createLimiter = (changes: Partial<EdgeLimits> = {}) =>
  createEdgeLimiter({
    requestsPerSecond: 1000,
    concurrency: 8,
    streams: 4,
    attachments: 2,
    forwards: 3,
    terminals: 3,
    perUser: 100,
    perWorkspace: 100,
    ...changes,
  })

t.test('rejects the ninth concurrent request of a token, and of a box, until another ends', async (t) => {
  const limiter = createLimiter()
  const releases = await Promise.all(
    Array.from({ length: 8 }, (_, i) => limiter.acquire(key('token'), `box${i}`)),
  )
  t.match(await rejectionOf(limiter.acquire(key('token'), 'another box')), rateLimited)
  t.equal(limiter.acquiredCount(), 8, 'a rejected request holds no slot')
  releases[0]?.()
  const next = await limiter.acquire(key('token'), 'box0')
  t.equal(limiter.acquiredCount(), 8)
  for (const release of [...releases, next]) release()
  t.equal(limiter.acquiredCount(), 0)

  const sameBox = await Promise.all(
    Array.from({ length: 8 }, (_, i) => limiter.acquire(key(`token${i}`), 'box')),
  )
  t.match(await rejectionOf(limiter.acquire(key('token'), 'box')), rateLimited)
  for (const release of sameBox) release()
})

t.test('a slot that is released twice counts once', async (t) => {
  const limiter = createLimiter({ concurrency: 1 })
  const releaseFirst = await limiter.acquire(key('token'), 'box')
  releaseFirst()
  const releaseSecond = await limiter.acquire(key('token'), 'box')
  releaseFirst()
  t.match(await rejectionOf(limiter.acquire(key('token'), 'box')), rateLimited)
  releaseSecond()
})

t.test('forwarded connections have a rate of their own, per token and per box', async (t) => {
  const limiter = createLimiter({
    requestsPerSecond: 1,
    concurrency: 1,
    streams: 1,
    attachments: 1,
    forwards: 1,
    terminals: 1,
  })
  const forward = async (token: string, box: string) => {
    await limiter.countRequest(token, true)
    const release = await limiter.acquire(key(token), box, { kind: 'forward' })
    release()
  }
  for (let i = 0; i < FORWARDS_PER_SECOND; i++) await forward('token', 'box')
  await t.rejects(forward('token', 'another box'), {
    code: 'rate_limited',
    message: /^This API key has reached the limit of 100 forwarded connections per second\./,
  })
  await t.rejects(forward('another token', 'box'), { code: 'rate_limited', message: /^This box has/ })
  await limiter.countRequest('token')
  const release = await limiter.acquire(key('token'), 'box')
  release()
})

t.test('rejects the twenty-first request per second of a token, and of a box', async (t) => {
  const request = async (limiter: EdgeLimiter, token: string, box: string) => {
    await limiter.countRequest(token)
    const release = await limiter.acquire(key(token), box)
    release()
  }
  const byToken = createLimiter({ requestsPerSecond: 20 })
  for (let i = 0; i < 20; i++) await request(byToken, 'token', `box${i}`)
  t.match(await rejectionOf(request(byToken, 'token', 'new box')), rateLimited)
  await request(byToken, 'another token', 'new box')

  const byBox = createLimiter({ requestsPerSecond: 20 })
  for (let i = 0; i < 20; i++) await request(byBox, `token${i}`, 'box')
  t.match(await rejectionOf(request(byBox, 'new token', 'box')), rateLimited)
})

t.test('rejects the fifth stream of a token, but not its other requests or other tokens', async (t) => {
  const limiter = createLimiter()
  const stream = { kind: 'stream' } as const
  const streams = []
  for (let i = 0; i < 4; i++) streams.push(await limiter.acquire(key('token'), `box${i}`, stream))
  const others = [
    await limiter.acquire(key('token'), 'box'),
    await limiter.acquire(key('another'), 'box', stream),
  ]
  t.match(
    await rejectionOf(limiter.acquire(key('token'), 'box', stream)),
    rateLimited,
    'Retry-After is short, because a stream may end at any time',
  )
  t.equal(limiter.acquiredCount(), 6, 'a rejected stream holds no slot')
  streams[2]?.()
  others.push(await limiter.acquire(key('token'), 'box', stream))
  for (let i = 0; i < 3; i++) others.push(await limiter.acquire(key('token'), `box${i}`))
  t.match(
    await rejectionOf(limiter.acquire(key('token'), 'box')),
    rateLimited,
    'a stream counts as a concurrent request',
  )
  for (const release of [...streams, ...others]) release()
  t.equal(limiter.acquiredCount(), 0)
})

t.test('allows another request after Retry-After seconds', async (t) => {
  const limiter = createLimiter({ requestsPerSecond: 5 })
  const request = async () => (await limiter.acquire(key('token'), 'box'))()
  for (let round = 0; round < 2; round++) {
    for (;;) {
      const rejection = await rejectionOf(request())
      if (rejection === null) continue
      t.equal(rejection.code, 'rate_limited')
      await new Promise((resolve) => setTimeout(resolve, Number(rejection.retryAfter) * 1000))
      break
    }
    await t.resolves(request())
  }
})

t.test('knows whether a request to a box, other than a stream, is in flight', async (t) => {
  const limiter = createLimiter()
  const stream = await limiter.acquire(key('key'), 'box', { kind: 'stream' })
  t.equal(limiter.hasRequests('box'), false)
  t.same([limiter.isInUse('box'), limiter.isInUse('other')], [true, false])
  const releases = [await limiter.acquire(key('key'), 'box'), await limiter.acquire(key('key'), 'box')]
  t.equal(limiter.hasRequests('box'), true)
  t.equal(limiter.hasRequests('other'), false)
  releases[0]?.()
  releases[0]?.()
  t.equal(limiter.hasRequests('box'), true)
  releases[1]?.()
  t.equal(limiter.hasRequests('box'), false)
  t.equal(limiter.isInUse('box'), true)
  stream()
  t.equal(limiter.isInUse('box'), false)
  const release = limiter.hold('box')
  t.equal(limiter.isInUse('box'), true)
  release()
  t.equal(limiter.acquiredCount(), 0)
})

t.test('a restart of the agent interrupts no connection that can be resumed', async (t) => {
  const limiter = createLimiter()
  const closeTerminal = await limiter.acquire(key('key'), 'box', { kind: 'attachment' })
  t.equal(limiter.hasInterruptibleRequests('box'), true)
  const endResumable = limiter.setResumable('box')
  t.equal(limiter.hasInterruptibleRequests('box'), false)
  t.equal(limiter.hasRequests('box'), true)
  const endRequest = await limiter.acquire(key('key'), 'box')
  t.equal(limiter.hasInterruptibleRequests('box'), true)
  endResumable()
  endResumable()
  closeTerminal()
  t.equal(limiter.hasInterruptibleRequests('box'), true)
  endRequest()
  t.equal(limiter.hasInterruptibleRequests('box'), false)
})

t.test('forwarded connections have a limit of their own, and are no requests in flight', async (t) => {
  const limiter = createLimiter({ concurrency: 1, streams: 1, attachments: 1 })
  const acquire = () => limiter.acquire(key('key'), 'box', { kind: 'forward' })
  const releases = [await acquire(), await acquire(), await acquire()]
  t.equal(limiter.hasRequests('box'), false)
  t.match(await rejectionOf(acquire()), rateLimited)
  t.match(await rejectionOf(limiter.acquire(key('another key'), 'box', { kind: 'forward' })), rateLimited)
  releases.push(await limiter.acquire(key('key'), 'box'))
  releases[0]?.()
  releases.push(await acquire())
  for (const release of releases) release()
  t.equal(limiter.acquiredCount(), 0)
})

t.test('limits what the keys of a user, and of a workspace, use together', async (t) => {
  for (const options of [{}, { kind: 'attachment' }, { kind: 'forward' }] as const) {
    const limiter = createLimiter({ concurrency: 2, forwards: 2, perUser: 3, perWorkspace: 4 })
    let boxes = 0
    const acquire = (...subject: Parameters<typeof key>) => {
      boxes += 1
      return limiter.acquire(key(...subject), `box${boxes}`, options)
    }
    for (const name of ['k1', 'k1', 'k2']) await acquire(name, 'u1')
    await t.rejects(acquire('k3', 'u1'), {
      code: 'rate_limited',
      message: /^Your user has reached the limit of 3 /,
    })
    await t.rejects(acquire('k3', 'u1', 'ws2'), { code: 'rate_limited' }, 'in all workspaces')
    const release = await acquire('k4', 'u2')
    await t.rejects(acquire('k5', 'u3'), { code: 'rate_limited', message: /^The workspace has reached/ })
    await acquire('k6', 'u4', 'ws2')
    release()
    await acquire('k5', 'u3')
  }
})

t.test('limits the open terminals of a workspace, over all keys and boxes', async (t) => {
  const limiter = createLimiter({ concurrency: 1, streams: 1 })
  const terminal = { kind: 'terminal' } as const
  const terminals = []
  for (let i = 0; i < 3; i++) terminals.push(await limiter.acquire(key(`key${i}`), `box${i}`, terminal))
  const acquireAnother = () => limiter.acquire(key('another'), 'another', terminal)
  t.match(await rejectionOf(acquireAnother()), { code: 'customer_session_limit' })
  await limiter.acquire(key('key', null, 'another workspace'), 'box', terminal)
  await limiter.acquire(key('key'), 'box', { kind: 'attachment' })
  t.equal(limiter.acquiredCount(), 5, 'a rejected terminal holds no slot')
  t.match(await rejectionOf(limiter.acquire(key('key0'), 'box0', { kind: 'attachment' })), null)
  t.match(
    await rejectionOf(limiter.acquire(key('key0'), 'box0', { kind: 'attachment' })),
    rateLimited,
    'a terminal counts as an attached connection',
  )
  t.match(
    await rejectionOf(limiter.acquire(key('key', null, 'free'), 'other', { ...terminal, terminalLimit: 0 })),
    {
      code: 'customer_session_limit',
    },
  )
  terminals[0]?.()
  await acquireAnother().then((release) => release(), t.fail)
})
