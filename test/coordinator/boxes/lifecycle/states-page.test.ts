// docs/states.md is drawn from the data of the state machine.
import { readFileSync } from 'node:fs'
import t from 'tap'
import { OBSERVED_STATES } from '../../../../shared/field-values.ts'
import { renderStatesPage, STATES_PAGE } from '../../../support/states-page.ts'

const page = readFileSync(STATES_PAGE, 'utf8')

t.test('docs/states.md is up to date', async (t) => {
  t.equal(page, renderStatesPage(page), 'otherwise run `npm run docs:states`')
})

t.test('the diagram has every state', async (t) => {
  const [, diagram = ''] = /```mermaid\n([\s\S]*?)```/.exec(page) ?? []
  for (const state of OBSERVED_STATES) t.match(diagram, new RegExp(`--> ${state}\\b`), state)
  t.notMatch(diagram, /: *$/m, 'every transition names its operation')
})

t.test('a page without its sections is not accepted', async (t) => {
  t.throws(() => renderStatesPage(page.replace('<!-- begin diagram -->', '')), /no markers/)
})
