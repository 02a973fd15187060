// Formats of durations.
import t from 'tap'
import { formatDuration } from '../../../cli/output/format.ts'

t.test('formats durations with at most two units', async (t) => {
  t.same([0, 1234, 9_990, 65_000, 3_600_000, 90_061_000].map(formatDuration), [
    '0.0s',
    '1.2s',
    '10.0s',
    '1m 5s',
    '1h 0m',
    '1d 1h',
  ])
})
