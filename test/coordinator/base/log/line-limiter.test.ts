// Log lines that clients without a credential cause: one per key and minute, with the number of those that were suppressed.
import t from 'tap'
import { createLineLimiter } from '../../../../coordinator/base/log/line-limiter.ts'

t.test('allows one line per key and interval, and counts the others', (t) => {
  let now = 0
  const count = createLineLimiter({ now: () => now }, { intervalMs: 1000 })
  t.same(count('a'), { suppressed: 0 })
  t.equal(count('a'), null)
  t.equal(count('a'), null)
  t.same(count('b'), { suppressed: 0 }, 'other keys are not affected')
  now = 999
  t.equal(count('a'), null)
  now = 1000
  t.same(count('a'), { suppressed: 3 })
  t.equal(count('a'), null)
  t.end()
})

t.test('many keys cause few lines', (t) => {
  let now = 0
  const count = createLineLimiter({ now: () => now }, { intervalMs: 1000, maxKeys: 10 })
  const countLines = (keys: number) => {
    let lines = 0
    for (let i = 0; i < keys; i += 1) if (count(`address ${now} ${i}`) !== null) lines += 1
    return lines
  }
  t.equal(countLines(1000), 11)
  now = 1000
  t.equal(countLines(1000), 11)
  t.end()
})
