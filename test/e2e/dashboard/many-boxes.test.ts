// The page of all boxes with 2,000 of them, which a fake feed sends: the rows appear in slices, a change changes only its row,
// and no box has a request of its own.
import t from 'tap'
import { NO_BROWSER } from '../../support/browser.ts'
import { openDashboard, waitForExpression } from '../../support/dashboard.ts'
import { createManyBoxes, MANY_BOXES, measureManyBoxes } from '../../support/many-boxes.ts'

t.test('2,000 boxes', { skip: NO_BROWSER }, async (t) => {
  const { box, page, url, problems } = await openDashboard(t, () => '/boxes/', { machines: 'fake' })
  const requests: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  const boxes = createManyBoxes(box)
  // The coordinator has no such boxes.
  await page.route('**/api/v1/boxes/*', (route) =>
    route.fulfill({ json: { box: boxes[0], state: { observed: 'degraded' }, job: null, events: [] } }),
  )
  const result = await measureManyBoxes(page, url, boxes)
  t.ok(
    result.firstRows > 0 && result.firstRows < MANY_BOXES,
    'the first rows are painted before the last ones are rendered',
  )
  t.same(result.one.names, ['box-0500'], 'nothing else of the document changes')
  t.equal(result.all.count, MANY_BOXES)
  t.equal(await page.locator('tbody .state.suspended').count(), MANY_BOXES)

  const names = page.locator('tbody th a')
  await page.getByLabel('Filter').fill('box-050')
  await waitForExpression(page, "document.querySelectorAll('tbody tr').length === 10")
  t.same(
    await names.allTextContents(),
    Array.from({ length: 10 }, (_, index) => `box-050${index}`),
  )
  await page.getByLabel('Filter').fill('')
  await waitForExpression(page, `document.querySelectorAll('tbody tr').length === ${MANY_BOXES}`)
  const changed = { ...boxes[700], observedState: 'degraded' }
  await page.evaluate(
    `window.feed.onmessage({ data: ${JSON.stringify(JSON.stringify({ type: 'changed', kind: 'boxes', items: [changed], removed: [], at: new Date().toISOString() }))} })`,
  )
  await page.getByRole('button', { name: 'State', exact: true }).click()
  await waitForExpression(page, "document.querySelector('tbody th a').textContent === 'box-0700'")
  t.equal(await names.count(), MANY_BOXES)
  const ofBoxes = requests.filter((request) => /\/box(es)?\//.test(new URL(request).pathname))
  t.ok(ofBoxes.length <= 10, `only boxes that do not reach their state have a request: ${ofBoxes}`)
  t.same(problems, [])
  t.comment(
    `${MANY_BOXES} boxes: first rows ${result.firstPaintMs.toFixed(0)} ms, all rows ${result.allMs.toFixed(0)} ms, longest task ${result.longestListMs.toFixed(0)} ms; one change ${result.one.ms.toFixed(0)} ms; a change of all ${result.all.ms.toFixed(0)} ms`,
  )
})
