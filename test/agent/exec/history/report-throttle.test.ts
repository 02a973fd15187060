import t from 'tap'
import { createReportThrottle } from '../../../../agent/exec/history/report-throttle.ts'

const MiB = 1024 * 1024

t.test('a process that writes on and on is looked at less and less often, up to a bound', async (t) => {
  const pace = createReportThrottle(3000)
  const pauses = Array.from({ length: 4 }, () => {
    const pauseMs = pace.delayMs(100)
    pace.onOutput(1)
    return pauseMs
  })
  t.same(pauses, [3000, 6000, 12_000, 12_000])
})

t.test('after a silence it begins anew', async (t) => {
  const pace = createReportThrottle(3000)
  pace.onOutput(1)
  t.equal(pace.delayMs(100), 6000)
  pace.onOutput(0)
  t.equal(pace.delayMs(100), 3000)
})

t.test('much output makes the pause longer, not shorter', async (t) => {
  const pace = createReportThrottle(3000)
  t.equal(pace.delayMs(MiB / 2), 4000)
  t.equal(pace.delayMs(2 * MiB), 12_000)
  pace.onOutput(1)
  t.equal(pace.delayMs(MiB / 2), 6000)
})
