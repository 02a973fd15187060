// Starts a coordinator and a browser for tests of the dashboard, and collects what its pages do wrong.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, Locator, Page } from 'playwright-core'
import type { Test } from 'tap'
import type { Box } from '../../shared/api/boxes.ts'
import { SESSION_COOKIE } from '../../shared/session-cookie.ts'
import { startBrowser } from './browser.ts'
import { type CoordinatorOptions, type RequestOptions, startTestCoordinator } from './coordinator.ts'
import { limitsEnv } from './limits-env.ts'
import { waitUntil } from './wait-until.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/**
 * Adds the errors and warnings of the console, violations of the policy among them, and uncaught errors of the page. Tests
 * send more requests per second than a user: a refusal that the page repeats is no problem.
 */
export function collectProblems(page: Page, problems: string[] = []): string[] {
  page.on('console', (message) => {
    const isProblem = message.type() === 'error' || message.type() === 'warning'
    if (isProblem && !message.text().includes('status of 429')) problems.push(message.text())
  })
  page.on('pageerror', (error) => problems.push(error.message))
  return problems
}

/** Sends the secret of the owner, on the page that a visitor gets. */
export async function sendSecret(page: Page, dataDir: string): Promise<void> {
  const secret = readFileSync(join(dataDir, 'sign-in.key'), 'utf8').trim()
  await page.locator('#start').waitFor()
  // When a member has an email address, the form of the owner is the second one.
  if (!(await page.locator('#secret').isVisible())) await page.locator('#start summary').click()
  await page.locator('#secret').fill(secret)
  await page.getByRole('button', { name: 'Sign in as the owner' }).click()
}

/** The button of the menu of the user, which a page has when the session is loaded. On a narrow screen it is in the drawer. */
export const getAccountButton = (page: Page): Locator => page.locator('.account')

/** Chooses an item of the menu of a box, in its row or on its page. */
export async function chooseAction(page: Page, box: string, item: string): Promise<void> {
  await page.getByRole('button', { name: `Actions of ${box}`, exact: true }).click()
  await page.getByRole('menuitem', { name: item, exact: true }).click()
}

/** Signs out with the menu of the user. */
export async function signOut(page: Page): Promise<void> {
  await getAccountButton(page).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
}

/** Signs in as the owner, and waits for the next page. */
export async function signIn(page: Page, dataDir: string): Promise<void> {
  await sendSecret(page, dataDir)
  // The page of the sign-in has a heading, and for a moment a button Sign out, too.
  await page.waitForURL(({ pathname }) => !pathname.endsWith('/sign-in'))
}

/** A run behind a proxy may omit the tests of accessibility, which a proxy does not change. */
const omitsAccessibility = (): boolean => process.env.BOXWOOD_TEST_ACCESSIBILITY === 'off'
/** Opens a page of its own with the session. @returns the responses with an error, except those that the page repeats */
export async function openPage(browser: Browser, url: string, { headers = {} }: RequestOptions) {
  const context = await browser.newContext()
  const page = await context.newPage()
  // addCookies() sets a domain, which the prefix __Host- does not allow.
  const devTools = await context.newCDPSession(page)
  await devTools.send('Network.setCookie', {
    name: SESSION_COOKIE,
    value: headers.cookie?.slice(SESSION_COOKIE.length + 1) ?? '',
    url,
    secure: true,
  })
  const refused: string[] = []
  page.on('response', (response) => {
    const status = response.status()
    if (status >= 400 && status !== 429) refused.push(`${status} ${response.url()}`)
  })
  return { page, refused, problems: collectProblems(page) }
}

/** The rules that the page breaks, each with an element. The script runs outside the policy of the page. */
export async function findAccessibilityProblems(page: Page): Promise<string[]> {
  if (omitsAccessibility()) return []
  await page.evaluate(AXE)
  return page.evaluate(
    "axe.run(document).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))",
  )
}

/** Not page.waitForFunction(), whose eval() the policy of the dashboard allows in the first attempt only. */
export const waitForExpression = (page: Page, expression: string, ms?: number): Promise<unknown> =>
  waitUntil(`${expression} is true in the page`, () => page.evaluate(expression), ms)

/** The directory that BOXWOOD_SCREENSHOTS names. */
const SCREENSHOTS = process.env.BOXWOOD_SCREENSHOTS

async function takeScreenshot(page: Page, name: string): Promise<void> {
  if (!SCREENSHOTS) return
  // A modal dialog covers the window, not the whole page.
  const hasDialog = (await page.locator('dialog[open]').count()) > 0
  await page.screenshot({
    path: join(SCREENSHOTS, `${name}.png`),
    fullPage: !hasDialog,
    animations: 'disabled',
  })
}

/**
 * Runs axe-core on the page, light and dark, narrow and wide.
 * @param ready waits until the page shows its content
 * @param name of the screenshots; none are taken without it, and without BOXWOOD_SCREENSHOTS
 */
export async function testAccessibility(
  t: Test,
  page: Page,
  ready: () => Promise<unknown>,
  name?: string,
): Promise<void> {
  if (omitsAccessibility()) return
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [360, 1280]) {
      // A colour that is between two schemes has another contrast.
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.setViewportSize({ width, height: 800 })
      await ready()
      const title = `${page.url()} ${colorScheme} ${width}`
      t.same(await findAccessibilityProblems(page), [], title)
      t.equal(
        await page.evaluate('document.documentElement.scrollWidth'),
        width,
        `${title}: no horizontal scrolling`,
      )
      if (name === undefined) continue
      if (width === 1280) await takeScreenshot(page, `${name}-${colorScheme}`)
      else if (colorScheme === 'light') await takeScreenshot(page, `${name}-narrow`)
    }
}

/** A test sends more requests per second than a user. The pages repeat those that a limit has refused, but no downloads. */
const RAISED_RATE = limitsEnv({ edgeRequestsPerSecond: 10_000 })

/** Starts a coordinator with one running box, by default a real one, and a browser that shows the path as the owner. `url` is that of the pages. */
export async function openDashboard(
  t: Test,
  getPath: (box: Box) => string,
  options: CoordinatorOptions = { machines: 'local' },
) {
  const env = { ...RAISED_RATE, ...options.env }
  const coordinator = await startTestCoordinator(t, { ...options, env })
  const box: Box = (await coordinator.api('GET', '/boxes')).json.boxes[0]
  await coordinator.waitForState(box.id, 'running')
  // Further pages of the context have the same session.
  const page = await (await (await startBrowser(t)).newContext()).newPage()
  const url = coordinator.pageUrl
  await page.goto(url + getPath(box))
  await signIn(page, coordinator.dataDir)
  await getAccountButton(page).waitFor()
  await page.getByRole('heading', { level: 1 }).waitFor()
  return { ...coordinator, url, box, page, problems: collectProblems(page) }
}
