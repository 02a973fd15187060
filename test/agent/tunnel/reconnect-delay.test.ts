// Reconnect delays of the tunnel: temporary failures, persistent rejections, planned restarts.
import t from 'tap'
import { forgetFailures, reconnectDelay } from '../../../agent/tunnel/tunnel.ts'

const settings = { baseMs: 500, maxMs: 30_000 }
const randomMax = () => 0.999999
const randomMin = () => 0

t.test('the upper bound of the delay doubles with each failure; the lower bound is 0', async (t) => {
  const upperBounds = [0, 1, 2, 3, 4, 5, 6, 7, 1000].map(
    (failures) => reconnectDelay({ reason: '' }, failures, settings, randomMax) + 1,
  )
  t.same(upperBounds, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
  t.equal(reconnectDelay({ reason: '' }, 5, settings, randomMin), 0)
})

t.test(
  'a connection ends the back-off of an earlier outage, also when the coordinator is killed soon',
  async (t) => {
    t.equal(forgetFailures(7, 10_000, 10_000), 0, 'a stable connection')
    t.equal(forgetFailures(1, 500, 10_000), 1)
    const failures = forgetFailures(7, 500, 10_000)
    t.ok(reconnectDelay({ reason: '' }, failures, settings, randomMax) <= 2000)
    t.equal(forgetFailures(7, 0, 10_000), 7, 'no connection')
  },
)

t.test('a rejection that is unlikely to be temporary is retried slowly from the first failure', async (t) => {
  for (const status of [401, 409, 426]) {
    t.equal(reconnectDelay({ reason: '', status }, 0, settings, randomMin), 15_000)
    t.equal(reconnectDelay({ reason: '', status }, 0, settings, randomMax), 29_999)
  }
  t.equal(reconnectDelay({ reason: '', status: 503 }, 0, settings, randomMin), 0, '503 is temporary')
})

t.test('uses the reconnect delay that the coordinator requests, up to 10 minutes', async (t) => {
  t.equal(reconnectDelay({ reason: '', reconnectAfterMs: 1234 }, 9, settings, randomMax), 1234)
  t.equal(reconnectDelay({ reason: '', reconnectAfterMs: 1e12 }, 0, settings, randomMax), 600_000)
})
