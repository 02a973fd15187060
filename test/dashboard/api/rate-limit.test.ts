// Refused requests are repeated after the time that the response says, but not indefinitely.
import t from 'tap'
import { createRetryingFetch } from '../../../dashboard/api/rate-limit.ts'

/** Each response: a status, and the seconds of Retry-After. */
function createFixture(responses: readonly [status: number, seconds?: string][]) {
  const waits: number[] = []
  let requests = 0
  const retryingFetch = createRetryingFetch({
    async fetch() {
      const [status, seconds] = responses[requests] ?? [500]
      requests += 1
      return new Response('{}', { status, ...(seconds && { headers: { 'retry-after': seconds } }) })
    },
    async wait(ms, signal) {
      waits.push(ms)
      signal?.throwIfAborted()
    },
    random: () => 0.5,
  })
  return { retryingFetch, waits, countRequests: () => requests }
}

t.test('a refused request is repeated until it is accepted', async (t) => {
  const { retryingFetch, waits } = createFixture([[429, '1'], [429, '2'], [200]])
  t.equal((await retryingFetch('http://localhost/')).status, 200)
  t.same(waits, [1125, 2250])
})

t.test('after five attempts the refusal is the response', async (t) => {
  const { retryingFetch, countRequests } = createFixture(Array.from({ length: 9 }, () => [429, '1']))
  const response = await retryingFetch('http://localhost/')
  t.equal(response.status, 429)
  t.equal(await response.text(), '{}', 'with its body')
  t.equal(countRequests(), 5)
})

for (const [name, status, seconds] of [
  ['a limit without a time', 429, undefined],
  ['a long time', 429, '6'],
  ['a time that is no number', 429, 'soon'],
  ['another status', 503, '1'],
] as const)
  t.test(`${name} is not repeated`, async (t) => {
    const { retryingFetch, countRequests } = createFixture([
      seconds === undefined ? [status] : [status, seconds],
    ])
    t.equal((await retryingFetch('http://localhost/')).status, status)
    t.equal(countRequests(), 1)
  })

t.test('an aborted request is not repeated', async (t) => {
  const { retryingFetch, countRequests } = createFixture([[429, '1'], [200]])
  await t.rejects(
    retryingFetch('http://localhost/', { signal: AbortSignal.abort(new Error('left')) }),
    /left/,
  )
  t.equal(countRequests(), 1)
})
