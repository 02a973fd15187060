// The page of all boxes with 1,000 of them, which a fake feed sends: the rows appear in slices, and a change changes only its row.
import t from 'tap'
import { NO_BROWSER } from '../../support/browser.ts'
import { openDashboard } from '../../support/dashboard.ts'
import { MANY_BOXES, measureManyBoxes } from '../../support/many-boxes.ts'

t.test('1,000 boxes', { skip: NO_BROWSER }, async (t) => {
  const { box, page, url, problems } = await openDashboard(t, () => '/boxes/', { machines: 'fake' })
  const result = await measureManyBoxes(page, url, box)
  t.ok(
    result.firstRows > 0 && result.firstRows < MANY_BOXES,
    'the first rows are painted before the last ones are rendered',
  )
  t.same(result.one.names, ['box-0500'], 'nothing else of the document changes')
  t.equal(result.all.count, MANY_BOXES)
  t.equal(await page.locator('tbody .state.suspended').count(), MANY_BOXES)
  t.same(problems, [])
  t.comment(
    `${MANY_BOXES} boxes: first rows ${result.firstPaintMs.toFixed(0)} ms, all rows ${result.allMs.toFixed(0)} ms, longest task ${result.longestListMs.toFixed(0)} ms; one change ${result.one.ms.toFixed(0)} ms; a change of all ${result.all.ms.toFixed(0)} ms`,
  )
})
