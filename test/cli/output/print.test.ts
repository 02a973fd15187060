// JSON on a terminal.
import t from 'tap'
import { formatJson } from '../../../cli/output/print.ts'

t.test('JSON has the same values without control and format characters', async (t) => {
  const value = { text: 'a\u001b[2J\u009b2J\u202e\u2028\u{e0041}\n', list: ['🌳', 1] }
  for (const indent of [0, 2]) {
    const json = formatJson(value, indent)
    t.notMatch(json, /(?!\n)[\p{Cc}\p{Cf}\u2028]/u)
    t.same(JSON.parse(json), value)
  }
  t.equal(formatJson(['🌳'], 2), '[\n  "🌳"\n]')
})
