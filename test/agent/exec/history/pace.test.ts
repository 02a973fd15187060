import t from 'tap'
import { createPace } from '../../../../agent/exec/history/pace.ts'

const MiB = 1024 * 1024

t.test('a process that writes on and on is looked at less and less often, up to a bound', async (t) => {
  const pace = createPace(3000)
  const pauses = Array.from({ length: 4 }, () => {
    const pauseMs = pace.pauseMs(100)
    pace.wrote(1)
    return pauseMs
  })
  t.same(pauses, [3000, 6000, 12_000, 12_000])
})

t.test('after a silence it begins anew', async (t) => {
  const pace = createPace(3000)
  pace.wrote(1)
  t.equal(pace.pauseMs(100), 6000)
  pace.wrote(0)
  t.equal(pace.pauseMs(100), 3000)
})

t.test('much output makes the pause longer, not shorter', async (t) => {
  const pace = createPace(3000)
  t.equal(pace.pauseMs(MiB / 2), 4000)
  t.equal(pace.pauseMs(2 * MiB), 12_000)
  pace.wrote(1)
  t.equal(pace.pauseMs(MiB / 2), 6000)
})
