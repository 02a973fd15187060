// Names that a user may have meant.
import t from 'tap'
import { findSimilarNames } from '../../../cli/arguments/similar-names.ts'

t.test('a few characters more, fewer, other or exchanged', async (t) => {
  const names = ['fig', 'plum', 'grapefruit', 'grapefruit-2']
  for (const [typed, similar] of [
    ['fgi', ['fig']],
    ['figg', ['fig']],
    ['fog', ['fig']],
    ['plumm', ['plum']],
    ['lpum', ['plum']],
    ['grapefurit', ['grapefruit']],
    ['grapfruit-2', ['grapefruit-2']],
    ['grapefruit-', ['grapefruit', 'grapefruit-2']],
    ['kiwi', []],
    ['fi', []],
    ['', []],
  ] as const)
    t.same(findSimilarNames(typed, names), similar, typed)
  t.same(findSimilarNames('fig', []), [])
})
