// Shows many boxes in the page of the boxes, which a fake feed sends, and measures what the page does with them.
import type { Page } from 'playwright-core'
import type { Box } from '../../shared/api/boxes.ts'

export const MANY_BOXES = 2000

/** Durations in milliseconds, until the change is painted. */
export type ManyBoxes = {
  firstPaintMs: number
  firstRows: number
  allMs: number
  /** Of the first display. */
  longestListMs: number
  /** A change of one box: the rows that changed. */
  one: { ms: number; names: string[] }
  /** A change of all boxes: the number of rows that changed. */
  all: { ms: number; count: number }
}

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

/** Copies of the box with other names. */
export const createManyBoxes = (box: Box): Box[] =>
  Array.from({ length: MANY_BOXES }, (_, index) => {
    const digits = String(index).padStart(4, '0')
    return { ...box, id: `${box.id.slice(0, -4)}${digits}`, hostname: `box-${digits}` }
  })

/** @param page with a session, before it opens the dashboard */
export async function measureManyBoxes(page: Page, url: string, boxes: readonly Box[]): Promise<ManyBoxes> {
  await page.addInitScript('window.WebSocket = class { constructor() { window.feed = this } close() {} }')
  await page.goto(url)
  await page.getByText('Loading the boxes.').waitFor()
  return await page.evaluate(`${MEASURE}(${JSON.stringify(boxes)})`)
}
