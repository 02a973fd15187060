// The page of all boxes with 1,000 of them, which a fake feed sends: the rows appear in slices, and a change changes only its row.
import t from 'tap'
import { NO_BROWSER } from '../../support/browser.ts'
import { openDashboard } from '../../support/dashboard.ts'

const COUNT = 1000

/** Runs in the page. @returns figures in milliseconds, and what was rendered */
const MEASURE = `(async (boxes) => {
  const at = new Date().toISOString()
  const send = (message) => window.feed.onmessage({ data: JSON.stringify({ at, ...message }) })
  const painted = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
  const countRows = () => document.querySelectorAll('tbody tr').length
  const longTasks = []
  new PerformanceObserver((list) => longTasks.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: 'longtask' })
  const messages = []
  for (let start = 0; start < boxes.length; start += 200)
    messages.push({ type: 'items', kind: 'boxes', items: boxes.slice(start, start + 200) })

  const begin = performance.now()
  messages.forEach(send)
  send({ type: 'ready' })
  await painted()
  const firstPaintMs = performance.now() - begin
  const firstRows = countRows()
  while (countRows() < boxes.length) await new Promise((resolve) => setTimeout(resolve))
  await painted()
  const allMs = performance.now() - begin
  const longestListMs = Math.max(0, ...longTasks.splice(0))

  const changed = new Set()
  const observer = new MutationObserver((records) => {
    for (const { target } of records) {
      const element = target instanceof Element ? target : target.parentElement
      const row = element?.closest('tbody tr')
      if (row) changed.add(row.querySelector('a').textContent)
    }
  })
  observer.observe(document.querySelector('table'), { subtree: true, childList: true, attributes: true, characterData: true })
  const change = async (items) => {
    changed.clear()
    const start = performance.now()
    send({ type: 'changed', kind: 'boxes', items, removed: [] })
    await painted()
    return { ms: performance.now() - start, names: [...changed] }
  }
  const one = await change([{ ...boxes[500], observedState: 'degraded' }])
  const all = await change(boxes.map((box) => ({ ...box, observedState: 'suspended', updatedAt: at })))
  return { firstPaintMs, firstRows, allMs, longestListMs, one, all: { ms: all.ms, count: all.names.length } }
})`

t.test('1,000 boxes', { skip: NO_BROWSER }, async (t) => {
  const { box, page, url, problems } = await openDashboard(t, () => '/boxes/', { machines: 'fake' })
  await page.addInitScript('window.WebSocket = class { constructor() { window.feed = this } close() {} }')
  await page.goto(url)
  await page.getByText('Loading the boxes.').waitFor()
  const boxes = Array.from({ length: COUNT }, (_, index) => {
    const digits = String(index).padStart(4, '0')
    return { ...box, id: `${box.id.slice(0, -4)}${digits}`, hostname: `box-${digits}` }
  })
  // biome-ignore lint/suspicious/noExplicitAny: the script is a text.
  const result: any = await page.evaluate(`${MEASURE}(${JSON.stringify(boxes)})`)
  t.ok(
    result.firstRows > 0 && result.firstRows < COUNT,
    'the first rows are painted before the last ones are rendered',
  )
  t.same(result.one.names, ['box-0500'], 'nothing else of the document changes')
  t.equal(result.all.count, COUNT)
  t.equal(await page.locator('tbody .state.suspended').count(), COUNT)
  t.same(problems, [])
  t.comment(
    `${COUNT} boxes: first rows ${result.firstPaintMs.toFixed(0)} ms, all rows ${result.allMs.toFixed(0)} ms, longest task ${result.longestListMs.toFixed(0)} ms; one change ${result.one.ms.toFixed(0)} ms; a change of all ${result.all.ms.toFixed(0)} ms`,
  )
})
