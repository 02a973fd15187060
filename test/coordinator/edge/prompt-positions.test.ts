// Last-Event-ID of the streams of prompts.
import t from 'tap'
import {
  formatPosition,
  parseRunPosition,
  parseRunsPosition,
} from '../../../coordinator/edge/prompt-positions.ts'
import { newId } from '../../../shared/ids.ts'

t.test('a position is read as it was written', async (t) => {
  const [a, b] = [newId('run'), newId('run')]
  for (const [runs, sequence] of [
    [[], 0],
    [[[a, 0]], null],
    [[[a, 17]], 1_769_900_000_000],
    [
      [
        [a, 17],
        [b, 999_999_999_999_999],
      ],
      1_769_900_000_000,
    ],
    [Array.from({ length: 256 }, () => [newId('run'), 7]), 1],
  ] as [[string, number][], number | null][]) {
    const position = { runs: new Map(runs), sequence }
    t.same(parseRunsPosition(formatPosition(position)), position)
  }
  t.equal(parseRunPosition('17'), 17)
})

t.test('another text is refused', async (t) => {
  const id = newId('run')
  const texts = ['', ' ', 'x', `${id}`, `${id}:`, `${id}:-1`, `${id}:1.5`, `${id}:1;`, `,${id}:1`, `started:`]
  for (const text of [...texts, `started:1,${id}:1`, `${id}:1\n`, `${id}:1,`.repeat(257)])
    t.throws(() => parseRunsPosition(text), { code: 'invalid_request' }, text.slice(0, 60))
  for (const text of ['', 'x', '1:0', '-1', '1e3', '9'.repeat(16)])
    t.throws(() => parseRunPosition(text), { code: 'invalid_request' }, text.slice(0, 60))
})
