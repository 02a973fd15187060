// Formatting: tables that fit the terminal, and durations.
import t from 'tap'
import { formatDuration, formatJson, formatTable } from '../../../cli/output/output.ts'

t.test('truncates lines at the width of the terminal, without splitting a character', async (t) => {
  const rows = [
    ['ID', 'COMMAND'],
    ['p_1', `make the whole world of ${'🌳'.repeat(6)}`],
  ]
  t.equal(formatTable(rows), 'ID   COMMAND\np_1  make the whole world of 🌳🌳🌳🌳🌳🌳')
  t.equal(formatTable(rows, 33), 'ID   COMMAND\np_1  make the whole world of 🌳🌳🌳…')
  t.equal(formatTable(rows, 35), formatTable(rows))
  t.equal(formatTable(rows, 3), 'ID   COMMAND\np_1  make the whole worl…', 'keeps 20 characters of it')
})

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

t.test('JSON has the same values without control and format characters', async (t) => {
  const value = { text: 'a\u001b[2J\u009b2J\u202e\u2028\u{e0041}\n', list: ['🌳', 1] }
  for (const indent of [0, 2]) {
    const json = formatJson(value, indent)
    t.notMatch(json, /(?!\n)[\p{Cc}\p{Cf}\u2028]/u)
    t.same(JSON.parse(json), value)
  }
  t.equal(formatJson(['🌳'], 2), '[\n  "🌳"\n]')
})
