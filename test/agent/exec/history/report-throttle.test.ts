// The delay between output reports of one process.
import t from 'tap'
import { createReportThrottle } from '../../../../agent/exec/history/report-throttle.ts'

const MiB = 1024 * 1024

t.test('doubles the delay up to the maximum while a process writes continuously', async (t) => {
  const throttle = createReportThrottle(3000)
  const delays = Array.from({ length: 4 }, () => {
    const delayMs = throttle.delayMs(100)
    throttle.onOutput(1)
    return delayMs
  })
  t.same(delays, [3000, 6000, 12_000, 12_000])
})

t.test('returns to the first delay after a pause', async (t) => {
  const throttle = createReportThrottle(3000)
  throttle.onOutput(1)
  t.equal(throttle.delayMs(100), 6000)
  throttle.onOutput(0)
  t.equal(throttle.delayMs(100), 3000)
})

t.test('much output increases the delay', async (t) => {
  const throttle = createReportThrottle(3000)
  t.equal(throttle.delayMs(MiB / 2), 4000)
  t.equal(throttle.delayMs(2 * MiB), 12_000)
  throttle.onOutput(1)
  t.equal(throttle.delayMs(MiB / 2), 6000)
})
