import t from 'tap'
import { backoffMs } from '../../../agent/tunnel/backoff.ts'
import { retryDelay } from '../../../agent/tunnel/tunnel.ts'

const settings = { baseMs: 500, maxMs: 30_000 }
const almostOne = () => 0.999999
const zero = () => 0

t.test('the wait doubles with each failure up to the maximum, and may always be nothing', async (t) => {
  const longest = [0, 1, 2, 3, 4, 5, 6, 7, 1000].map(
    (failures) => backoffMs(failures, settings, almostOne) + 1,
  )
  t.same(longest, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
  t.equal(backoffMs(5, settings, zero), 0)
})

t.test('a refusal that time hardly changes waits near the maximum from the first time on', async (t) => {
  for (const status of [401, 409, 426]) {
    t.equal(retryDelay({ reason: '', status }, 0, settings, zero), 15_000)
    t.equal(retryDelay({ reason: '', status }, 0, settings, almostOne), 29_999)
  }
  t.equal(
    retryDelay({ reason: '', status: 503 }, 0, settings, zero),
    0,
    'a coordinator in trouble is not a refusal',
  )
})

t.test('an orderly goodbye says when to come back, within reason', async (t) => {
  t.equal(retryDelay({ reason: '', reconnectAfterMs: 1234 }, 9, settings, almostOne), 1234)
  t.equal(retryDelay({ reason: '', reconnectAfterMs: 1e12 }, 0, settings, almostOne), 600_000)
})
