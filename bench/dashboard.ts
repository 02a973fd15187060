// Measures the dashboard in headless Chromium: sizes, the time until a page is ready, keys of a terminal, and much output.
// `node bench/dashboard.ts` runs only this benchmark.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { buildDashboard, DESIGN_START } from '../coordinator/http/dashboard/build.ts'
import { launchBrowser, NO_BROWSER } from '../test/support/browser.ts'
import { signIn, waitForExpression } from '../test/support/dashboard.ts'
import { createManyBoxes, measureManyBoxes } from '../test/support/many-boxes.ts'
import { PROJECT_DIR } from '../test/support/project.ts'
import { LONG_DEADLINE_MS } from '../test/support/wait-until.ts'
import { type Boxwood, startBoxwood } from './support/boxwood.ts'
import { formatNumber, measureDuration, median, toMiB } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'
import { ECHO_COMMAND, type Echo, openBoxwoodEcho, startSession } from './terminal.ts'

const BUILDS = 5
const LOADS = 20
const KEYS = 200
const WARM_UP_KEYS = 50
const KEY_INTERVAL_MS = 20
const OUTPUT_BYTES = 100_000_000
const PAGE_ECHO = 'page-echo'
const FLOOD = 'flood'

type Figure = { name: string; value: string; aim: string }

/** Empty without Chromium. */
export async function benchDashboard(): Promise<Table[]> {
  if (NO_BROWSER !== false) {
    console.error(`The dashboard is not measured: ${NO_BROWSER}.`)
    return []
  }
  await using cleanup = new AsyncDisposableStack()
  const boxwood = await startBoxwood()
  cleanup.defer(() => boxwood.close())
  const browser = await launchBrowser()
  cleanup.defer(() => browser.close())
  const page = await openPage(browser, boxwood)
  const figures = [
    ...(await measureSizes(page, boxwood)),
    await measureBuild(),
    await measureReady(page, boxwood),
    ...(await measureBoxes(page, boxwood)),
    ...(await measureKeys(page, boxwood)),
    ...(await measureFlood(page, boxwood)),
  ]
  return [
    {
      title: 'The dashboard in headless Chromium',
      columns: ['', 'measured', 'aim'],
      rows: figures.map(({ name, value, aim }) => [name, value, aim]),
    },
  ]
}

/** Signed in as the owner. The responses are compressed with gzip, as those of the aims. */
async function openPage(browser: Browser, { url, dataDir, box }: Boxwood): Promise<Page> {
  const context = await browser.newContext({ extraHTTPHeaders: { 'accept-encoding': 'gzip' } })
  const page = await context.newPage()
  await page.goto(`${url}/boxes/${box.hostname}`)
  await signIn(page, dataDir)
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  return page
}

/** The scripts and styles that a page has loaded: the sum of their sizes as transferred, in KiB. */
async function readTransferred(page: Page): Promise<number> {
  const bytes = await page.evaluate(
    "performance.getEntriesByType('resource').filter(({ name }) => /dashboard\\/.*\\.(js|css)$/.test(name)).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)",
  )
  return Number(bytes) / 1024
}

async function measureSizes(page: Page, boxwood: Boxwood): Promise<Figure[]> {
  const { url, box } = boxwood
  const open = async (path: string, selector: string) => {
    await page.goto(url + path)
    await page.locator(selector).first().waitFor()
    return readTransferred(page)
  }
  const kib = (value: number) => `${formatNumber(value)} KiB`
  const first = await open('/', 'tbody tr')
  const sessions = await open(`/boxes/${box.hostname}/terminals`, 'form')
  await startSession(boxwood, PAGE_ECHO, ECHO_COMMAND)
  const terminal = await open(`/boxes/${box.hostname}/terminals?session=${PAGE_ECHO}`, '.xterm-rows')
  const { everything } = await readBuild()
  return [
    { name: 'scripts and styles of the first view, gzip', value: kib(first), aim: '≤ 70 KiB' },
    { name: 'further ones of a terminal, gzip', value: kib(terminal - sessions), aim: '≤ 110 KiB' },
    { name: 'all scripts and styles, gzip', value: kib(everything), aim: '≤ 280 KiB' },
  ]
}

async function readBuild(): Promise<{ everything: number }> {
  const files = await buildDashboard(PROJECT_DIR, [])
  const bytes = files
    .filter(({ name }) => name.endsWith('.gz') && !name.startsWith(DESIGN_START))
    .reduce((sum, file) => sum + file.bytes.length, 0)
  return { everything: bytes / 1024 }
}

async function measureBuild(): Promise<Figure> {
  const samples: number[] = []
  for (let build = 0; build < BUILDS; build++)
    samples.push(await measureDuration(() => buildDashboard(PROJECT_DIR, [])))
  return { name: 'build and compression', value: `${formatNumber(median(samples))} ms`, aim: '≤ 1000 ms' }
}

async function measureReady(page: Page, { url }: Boxwood): Promise<Figure> {
  await page.addInitScript(
    "new MutationObserver(() => { if (!window.readyAt && document.querySelector('tbody tr')) window.readyAt = performance.now() }).observe(document, { childList: true, subtree: true })",
  )
  const samples: number[] = []
  for (let load = 0; load < LOADS; load++) {
    await page.goto(url)
    await waitForExpression(page, 'window.readyAt')
    const ms = await page.evaluate(
      "window.readyAt - performance.getEntriesByType('navigation')[0].responseStart",
    )
    samples.push(Number(ms))
  }
  return {
    name: 'first byte of the document until the boxes are in the page',
    value: `${formatNumber(median(samples))} ms`,
    aim: '≤ 50 ms',
  }
}

async function measureBoxes(page: Page, { url, box }: Boxwood): Promise<Figure[]> {
  const other = await page.context().newPage()
  const { firstPaintMs, allMs, one, all } = await measureManyBoxes(other, url, createManyBoxes(box))
  await other.close()
  const ms = (value: number) => `${formatNumber(value)} ms`
  return [
    { name: '2,000 boxes: until the first rows are painted', value: ms(firstPaintMs), aim: '≤ 100 ms' },
    { name: '2,000 boxes: until all rows are painted', value: ms(allMs), aim: '' },
    { name: '2,000 boxes: a change of one is painted', value: ms(one.ms), aim: '≤ 50 ms' },
    { name: '2,000 boxes: a change of all is painted', value: ms(all.ms), aim: '' },
  ]
}

/** The echo of the page: a key is an input event, and its echo is a change of the rows that the page paints. */
const PRESS_KEY = `new Promise((resolve) => {
  const start = performance.now()
  new MutationObserver((_, observer) => {
    observer.disconnect()
    resolve(performance.now() - start)
  }).observe(document.querySelector('.xterm-rows'), { childList: true, subtree: true, characterData: true })
  document.querySelector('.xterm-helper-textarea').dispatchEvent(
    new InputEvent('input', { data: 'x', inputType: 'insertText', bubbles: true }),
  )
})`

async function measureKeys(page: Page, boxwood: Boxwood): Promise<Figure[]> {
  await page.goto(`${boxwood.url}/boxes/${boxwood.box.hostname}/terminals?session=${PAGE_ECHO}`)
  // The program has written a byte: the page is attached.
  await page.locator('.xterm-rows', { hasText: 'r' }).waitFor()
  const echo: Echo = await openBoxwoodEcho(boxwood)
  try {
    const samples = { page: [] as number[], socket: [] as number[] }
    for (let key = 0; key < WARM_UP_KEYS + KEYS; key++) {
      await sleep(KEY_INTERVAL_MS)
      const inPage = Number(await page.evaluate(PRESS_KEY))
      await sleep(KEY_INTERVAL_MS)
      const overSocket = await measureDuration(echo.pressKey)
      if (key < WARM_UP_KEYS) continue
      samples.page.push(inPage)
      samples.socket.push(overSocket)
    }
    const [shown, received] = [median(samples.page), median(samples.socket)]
    return [
      {
        name: 'a key of `box ssh` until its echo is received',
        value: `${formatNumber(received)} ms`,
        aim: '',
      },
      {
        name: 'a key of the terminal page until its echo is in the page',
        value: `${formatNumber(shown)} ms`,
        aim: `≤ ${formatNumber(received + 10)} ms`,
      },
    ]
  } finally {
    await echo.close()
  }
}

async function measureFlood(page: Page, boxwood: Boxwood): Promise<Figure[]> {
  const terminal = `${boxwood.url}/boxes/${boxwood.box.hostname}/terminals?session=${FLOOD}`
  await startSession(
    boxwood,
    FLOOD,
    `read start; yes "0123456789 0123456789 0123456789 0123456789 0123456789" | head -c ${OUTPUT_BYTES}; echo; echo finished; read end`,
  )
  await page.goto(terminal)
  await page.locator('.xterm-rows').waitFor()
  const session = await page.context().newCDPSession(page)
  const readHeap = async () => {
    await session.send('HeapProfiler.collectGarbage')
    return toMiB((await session.send('Runtime.getHeapUsage')).usedSize)
  }
  const before = await readHeap()
  await page.evaluate(
    'window.gaps = []; window.last = performance.now(); setInterval(() => { const now = performance.now(); window.gaps.push(now - window.last); window.last = now }, 10)',
  )
  const ms = await measureDuration(async () => {
    await page.locator('.xterm-helper-textarea').focus()
    await page.keyboard.press('Enter')
    await waitForExpression(
      page,
      "document.querySelector('.xterm-rows').textContent.includes('finished')",
      LONG_DEADLINE_MS,
    )
  })
  const gaps = (await page.evaluate('window.gaps')) as number[]
  const after = await readHeap()
  return [
    {
      name: `a terminal that prints ${OUTPUT_BYTES / 1_000_000} MB`,
      value: `${formatNumber(OUTPUT_BYTES / 1000 / ms)} MB/s`,
      aim: '',
    },
    {
      name: 'its longest delay of a timer of the page',
      value: `${formatNumber(Math.max(...gaps))} ms`,
      aim: '',
    },
    {
      name: 'its memory of scripts before and after',
      value: `${formatNumber(before)} MiB, ${formatNumber(after)} MiB`,
      aim: 'flat',
    },
  ]
}

if (import.meta.main) for (const table of await benchDashboard()) console.log(formatMarkdown(table))
