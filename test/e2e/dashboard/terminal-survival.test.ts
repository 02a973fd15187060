// A counting program in a terminal of the dashboard, through all that may happen to the page, the network, the coordinator and
// the agent: no line is missing or double.
import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { NO_BROWSER, startBrowser } from '../../support/browser.ts'
import { getAccountButton, signIn } from '../../support/dashboard.ts'
import { findAgentPid } from '../../support/find-agent-process.ts'
import { startProxiedCoordinator } from '../../support/proxied-coordinator.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** Prints a line each 50 ms, up to the number in the file `limit`. */
const COUNTER =
  'i=0; while [ ! -e stop ]; do [ $i -ge "$(cat limit)" ] || { i=$((i+1)); echo "line $i"; }; sleep 0.05; done; exit 3'
/** The lines that are printed between two events. */
const LINES = 10
/** What an event adds to the limit: all together are fewer lines than a new viewer gets, also on a slow machine. */
const MORE = 40
const MINUTE_MS = 60_000

const WINDOW = { width: 1000, height: 700 }
/** Shows all lines at once. */
const TALL_WINDOW = { width: 1000, height: 20_000 }

const readRows = async (page: Page): Promise<string[]> => {
  const rows = await page.locator('.xterm-rows > div').allTextContents()
  return rows.map((row) => row.replaceAll('\u00a0', ' ').trimEnd()).filter((row) => row !== '')
}

/** All lines of the terminal, with those that it has scrolled out of view. */
async function readLines(page: Page): Promise<string[]> {
  await page.setViewportSize(TALL_WINDOW)
  // Another viewer may change the size of the terminal after this.
  const lines = await waitUntil('the terminal shows its first line', async () => {
    const rows = await readRows(page)
    return rows[0] === 'line 1' && rows
  })
  await page.setViewportSize(WINDOW)
  return lines
}

async function readLast(page: Page): Promise<number> {
  const lines = await readRows(page)
  return Number(/\d+/.exec(lines.at(-1) ?? '')?.[0] ?? 0)
}

const count = (length: number) => Array.from({ length }, (_, index) => `line ${index + 1}`)

async function openPage(browser: Browser, url: string, dataDir: string): Promise<Page> {
  const page = await (await browser.newContext({ viewport: WINDOW })).newPage()
  await page.clock.install()
  await page.goto(url)
  await signIn(page, dataDir)
  await getAccountButton(page).waitFor()
  return page
}

t.test('a terminal with a counting program', { skip: NO_BROWSER }, async (t) => {
  const { coordinator, clientProxy, box, restart } = await startProxiedCoordinator(t)
  const browser = await startBrowser(t)
  const page = await openPage(
    browser,
    `${clientProxy.url}/boxes/${box.hostname}/terminals`,
    coordinator.dataDir,
  )
  const start = async (name: string) => {
    await page.getByLabel('Name').fill(name)
    await page.getByLabel('Program').fill(COUNTER)
    await page.keyboard.press('Enter')
  }
  let limit = 0
  const allowMore = async () => {
    limit += MORE
    await coordinator.exec(box.id, `echo ${limit} > new; mv new limit`)
  }
  const advance = async (shown = page) => {
    await allowMore()
    const last = await readLast(shown)
    await waitUntil(`${LINES} more lines`, async () => (await readLast(shown)) >= last + LINES)
  }
  const checkLines = async (event: string, shown = page) => {
    await advance(shown)
    const lines = await readLines(shown)
    t.same(lines, count(lines.length), `${event}: ${lines.length} lines`)
  }
  await allowMore()
  await start('count')
  await advance()

  await page.reload()
  await checkLines('a reload')

  const second = await openPage(browser, page.url(), coordinator.dataDir)
  await checkLines('the second viewer', second)
  await checkLines('the first viewer')

  await page.context().setOffline(true)
  clientProxy.blackhole()
  for (const shown of [page, second]) await shown.clock.fastForward(MINUTE_MS)
  await checkLines('a connection that is lost without a notice', second)
  await page.getByText('The connection to the coordinator is lost.').waitFor()
  const before = await readLast(page)
  await advance(second)
  t.equal(await readLast(page), before, 'the page is offline')
  await page.context().setOffline(false)
  await checkLines('a minute without network')

  await allowMore()
  await restart()
  await checkLines('kill -9 of the coordinator')
  await checkLines('kill -9 of the coordinator, the second viewer', second)

  await allowMore()
  process.kill(findAgentPid(box.id) ?? Number.NaN, 'SIGKILL')
  await checkLines('kill -9 of the agent')
  await checkLines('kill -9 of the agent, the second viewer', second)

  await coordinator.exec(box.id, 'touch stop')
  for (const shown of [page, second]) {
    await shown.getByText('The session has ended with exit status 3.').waitFor()
    const lines = await readLines(shown)
    t.same(lines, count(lines.length))
  }
})
