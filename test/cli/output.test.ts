// What a person reads: tables that fit the terminal, times.
import t from 'tap'
import { duration, table } from '../../cli/output.ts'

t.test('a table is cut at the width of the terminal, never within a character', async (t) => {
  const rows = [
    ['ID', 'COMMAND'],
    ['p_1', `make the whole world of ${'🌳'.repeat(6)}`],
  ]
  t.equal(table(rows), 'ID   COMMAND\np_1  make the whole world of 🌳🌳🌳🌳🌳🌳')
  t.equal(table(rows, 33), 'ID   COMMAND\np_1  make the whole world of 🌳🌳🌳…')
  t.equal(table(rows, 35), table(rows))
  t.equal(table(rows, 3), 'ID   COMMAND\np_1  make the whole worl…', 'something of it is always there')
})

t.test('durations', async (t) => {
  t.same([0, 1234, 9_990, 65_000, 3_600_000, 90_061_000].map(duration), [
    '0.0s',
    '1.2s',
    '10.0s',
    '1m 5s',
    '1h 0m',
    '1d 1h',
  ])
})
