// The ports that the user types for `box forward`.
import t from 'tap'
import { parseForward, parseForwards } from '../../../cli/forward/parse-forward.ts'

t.test('a port, and another port of this machine', async (t) => {
  t.same(parseForward('5432'), { localPort: 5432, port: 5432 })
  t.same(parseForward('8080:3000'), { localPort: 8080, port: 3000 })
  t.same(parseForward('0:3000'), { localPort: 0, port: 3000 })
  t.same(parseForward('http://localhost:3000/index.html'), { localPort: 3000, port: 3000 })
  t.same(parseForward('1:65535'), { localPort: 1, port: 65_535 })
})

t.test('other texts are refused', async (t) => {
  for (const text of [
    '',
    '0',
    '65536',
    '3000:0',
    'http',
    '3000:',
    ':3000',
    '1:2:3',
    '127.0.0.1:80',
    'http://example.com:80',
    '-1',
    '1.5',
  ])
    t.throws(() => parseForward(text), { exitCode: 2, message: `'${text}' is not a port.` }, text)
})

t.test('a local port that is used twice', async (t) => {
  t.throws(() => parseForwards(['3000', '3000:80']), { exitCode: 2, message: 'such as 3001:3000.' })
  t.equal(parseForwards(['0:80', '0:81']).length, 2)
})
