// Colours in tables, and when they are omitted.
import t from 'tap'
import { colorize } from '../../../cli/output/colors.ts'
import { formatTable } from '../../../cli/output/table.ts'

const createStream = (isTTY: boolean, depth: number) =>
  ({ isTTY, getColorDepth: () => depth, on: () => undefined, write: () => true }) as never

t.test('colours are written to a terminal with colours only', async (t) => {
  // The test runner sets them.
  delete process.env.NO_COLOR
  delete process.env.FORCE_COLOR
  t.equal(colorize('failed', 'red', createStream(true, 8)), '\u001b[31mfailed\u001b[39m')
  t.equal(colorize('failed', 'red', createStream(true, 1)), 'failed', 'TERM=dumb or NO_COLOR')
  t.equal(colorize('failed', 'red', createStream(false, 8)), 'failed', 'a pipe')
})

t.test('a colour does not change the columns of a table', async (t) => {
  const rows = (color: 'red' | null) => [
    ['NAME', 'STATE', 'AGE'],
    ['fig', { text: 'failed', color }, '5m'],
    ['plum', { text: 'running\u001b[2J', color: null }, '10m'],
  ]
  const plain = formatTable(rows(null))
  t.equal(plain, 'NAME  STATE        AGE\nfig   failed       5m\nplum  running\uFFFD[2J  10m')
  process.env.FORCE_COLOR = '1'
  t.teardown(() => delete process.env.FORCE_COLOR)
  t.equal(formatTable(rows('red')), plain.replace('failed', '\u001b[31mfailed\u001b[39m'))
  t.equal(
    formatTable(
      [
        ['NAME', 'COMMAND'],
        ['fig', { text: 'a long command line of many words', color: 'red' }],
      ],
      26,
    ),
    'NAME  COMMAND\nfig   \u001b[31ma long command line…\u001b[39m',
  )
})
