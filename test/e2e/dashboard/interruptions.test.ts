// What interrupts the user of a page: the end of the session, another user, a wrong clock, and a browser without cookies or
// JavaScript.
import type { Page } from 'playwright-core'
import t from 'tap'
import { NO_BROWSER } from '../../support/browser.ts'
import {
  chooseAction,
  collectProblems,
  openDashboard,
  sendSecret,
  signIn,
  signOut,
  waitForExpression,
} from '../../support/dashboard.ts'
import { waitUntil } from '../../support/wait-until.ts'

const DAY_MS = 86_400_000

t.test('interruptions', { skip: NO_BROWSER }, async (t) => {
  const dashboard = await openDashboard(t, () => '/boxes/', { machines: 'fake' })
  const { url, api, box, dataDir, page, problems, waitForState } = dashboard
  const browser = page.context().browser()
  if (browser === null) throw new Error('The context has no browser.')
  const list = async (): Promise<(typeof box)[]> => (await api('GET', '/boxes?live=1')).json.boxes
  const rowOf = (shown: Page, name: string) =>
    shown.getByRole('row', { name: new RegExp(`^Choose ${name} `) })
  const dialog = page.getByRole('dialog')
  const create = async (name: string): Promise<string> => {
    const { id } = (await api('POST', '/boxes', { name })).json.box
    await waitForState(id, 'running')
    return id
  }
  /** Ends the session of the browser, like a sign-out in another tab. */
  const endSession = () =>
    page.context().request.delete(`${url}/api/v1/session`, { headers: { origin: url } })
  /** The tab that the link of the page opens. */
  const openSignIn = async () => {
    const [tab] = await Promise.all([
      page.waitForEvent('popup'),
      page.getByRole('link', { name: 'sign in in another tab' }).locator('visible=true').last().click(),
    ])
    return tab
  }

  await t.test('the session ends while a dialog is open: its text can be sent after a sign-in', async (t) => {
    await page.getByRole('button', { name: 'New box' }).click()
    await dialog.getByLabel('Name', { exact: true }).fill('kept')
    await endSession()
    await dialog.getByText('Your session has ended.').waitFor()
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    await dialog.locator('.problem', { hasText: 'unauthorized' }).waitFor()
    const tab = await openSignIn()
    await signIn(tab, dataDir)
    await tab.getByRole('heading', { level: 1, name: 'Boxes' }).waitFor()
    await page.getByText('Your session has ended.').first().waitFor({ state: 'detached' })
    t.equal(await dialog.getByLabel('Name', { exact: true }).inputValue(), 'kept')
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    t.ok((await list()).some(({ hostname }) => hostname === 'kept'))
    await rowOf(page, 'kept').locator('.state.running').waitFor()
    await tab.close()
  })

  await t.test(
    'a text on a page is kept too; without one, the page asks for the sign-in itself',
    async (t) => {
      await page.goto(`${url}/boxes/${box.hostname}/commands`)
      await page.getByLabel('Command', { exact: true }).fill('echo kept')
      await endSession()
      await page.getByText('Your session has ended.').waitFor()
      const tab = await openSignIn()
      await signIn(tab, dataDir)
      await page.getByText('Your session has ended.').waitFor({ state: 'detached' })
      t.equal(await page.getByLabel('Command', { exact: true }).inputValue(), 'echo kept')
      await tab.close()
      await page.getByLabel('Command', { exact: true }).fill('')
      await endSession()
      await page.getByRole('heading', { name: 'Sign in to Boxwood' }).waitFor()
      await signIn(page, dataDir)
      await page.getByRole('heading', { level: 1, name: box.hostname }).waitFor()
      t.equal(new URL(page.url()).pathname, `/boxes/${box.hostname}/commands`)
      problems.splice(0)
    },
  )

  await t.test(
    'a sign-out: the sign-in page does not return, also when the feed ends before the response',
    async (t) => {
      // The page has the response about its session: a request that is being routed would be lost with its route.
      const waitForSignIn = () => page.locator('#start').waitFor()
      await page.route('**/api/v1/session', async (route) => {
        if (route.request().method() !== 'DELETE') return route.fallback()
        const response = await route.fetch()
        // The server has closed the feed, and the page has loaded its session: it must not navigate because of that.
        await page.waitForResponse(
          (other) => other.url().endsWith('/api/v1/session') && other.status() === 401,
        )
        await page.evaluate('new Promise((resolve) => setTimeout(resolve, 200))').catch(() => undefined)
        await route.fulfill({ response })
      })
      await signOut(page)
      await waitForSignIn()
      t.equal(new URL(page.url()).search, '')
      await page.unrouteAll()

      await signIn(page, dataDir)
      await page.goto(`${url}/boxes/${box.hostname}`)
      await page.route('**/api/v1/session', async (route) => {
        if (route.request().method() !== 'DELETE') return route.fallback()
        await route.fetch()
        await route.abort()
      })
      await signOut(page)
      await waitForSignIn()
      await page.unrouteAll()
      await signIn(page, dataDir)
      await page.getByRole('heading', { level: 1, name: box.hostname }).waitFor()
      problems.splice(0)
    },
  )

  await t.test('two users change a box: the second one gets the message of the API', async (t) => {
    const other = await (await browser.newContext()).newPage()
    await other.goto(`${url}/boxes/`)
    await signIn(other, dataDir)
    await page.goto(url)
    const id = await create('shared')

    // Renamed: the dialog has the new name.
    await chooseAction(page, 'shared', 'Delete')
    await other.goto(`${url}/boxes/shared`)
    await chooseAction(other, 'shared', 'Rename')
    await other.getByRole('dialog').getByRole('textbox').fill('other-name')
    await other.getByRole('dialog').getByRole('button', { name: 'Rename', exact: true }).click()
    await page.getByRole('dialog', { name: 'Delete other-name' }).waitFor()
    t.ok(await dialog.getByRole('button', { name: 'Delete', exact: true }).isDisabled())
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await other.getByRole('heading', { level: 1, name: 'other-name' }).waitFor()
    t.equal(new URL(other.url()).pathname, '/boxes/other-name')

    // Suspended: what was typed stays.
    await chooseAction(page, 'other-name', 'Fork')
    await dialog.getByLabel('Name of the new box').fill('copy')
    await other.getByRole('button', { name: 'Suspend other-name' }).click()
    await waitForState(id, 'suspended')
    await rowOf(page, 'other-name').locator('.state.suspended').waitFor()
    t.equal(await dialog.getByLabel('Name of the new box').inputValue(), 'copy')

    // Deleted.
    await chooseAction(other, 'other-name', 'Delete')
    await other.getByRole('dialog').getByRole('textbox').fill('other-name')
    await other.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await rowOf(page, 'other-name').waitFor({ state: 'detached' })
    await other.getByText('The box was deleted').waitFor()
    await dialog.getByRole('button', { name: 'Fork', exact: true }).click()
    t.match(await dialog.locator('.problem').textContent(), /deleted|not_found/)
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    await waitForExpression(page, "document.activeElement.tagName === 'H1'")
    t.notOk((await list()).some(({ hostname }) => /copy|other-name/.test(hostname)))
    problems.splice(0)

    // The page of the box: a rename is followed, and a dialog stays when the box is deleted.
    const last = await create('mine')
    await page.goto(`${url}/boxes/mine`)
    await chooseAction(page, 'mine', 'Make a template')
    await dialog.getByRole('textbox').fill('template')
    await api('PATCH', `/boxes/${last}`, { name: 'yours' })
    await page.getByRole('heading', { level: 1, name: 'yours' }).waitFor()
    t.equal(await dialog.getByRole('textbox').inputValue(), 'template')
    await api('DELETE', `/boxes/${last}`)
    await waitUntil('the box is deleted', async () => (await list()).every(({ id }) => id !== last))
    await page.getByText('The box was deleted').waitFor()
    await dialog.getByRole('button', { name: 'Make a template', exact: true }).click()
    t.match(await dialog.locator('.problem').textContent(), /deleted|not_found/)
    await other.context().close()
    problems.splice(0)
  })

  await t.test('the clock of the browser is a day ahead or behind', async (t) => {
    const time = Date.now()
    for (const shift of [DAY_MS, -DAY_MS]) {
      const context = await browser.newContext()
      const shifted = await context.newPage()
      await shifted.clock.install({ time: time + shift })
      collectProblems(shifted, problems)
      await shifted.goto(`${url}/boxes/`)
      await signIn(shifted, dataDir)
      await rowOf(shifted, box.hostname).waitFor()
      t.match(
        await rowOf(shifted, box.hostname).locator('time').textContent(),
        /^\d+ (s|min) ago$/,
        'the last activity',
      )
      // The list is loaded before the feed sends the time of the coordinator.
      const held = Promise.withResolvers<void>()
      await shifted.routeWebSocket('**/api/v1/feed?*', async (socket) => {
        await held.promise
        socket.connectToServer()
      })
      await shifted.goto(`${url}/workspace/sessions`)
      await shifted.getByText(/^As of /).waitFor()
      held.resolve()
      // Requested when the feed has begun.
      await shifted.waitForResponse('**/dashboard/build.json')
      t.match(await shifted.getByText(/^As of /).textContent(), /^As of \d s ago$/)
      let tickets = 0
      shifted.on('request', (request) => {
        if (request.url().endsWith('/tickets')) tickets += 1
      })
      await shifted.goto(`${url}/boxes/${box.hostname}/timeline?last=3600`)
      const surface = shifted.getByRole('slider', { name: 'Range of the timeline' })
      await surface.waitFor()
      const readEnd = async () => Number(await surface.getAttribute('aria-valuemax')) * 1000
      t.ok(Math.abs((await readEnd()) - Date.now()) < 60_000, 'the range ends now')
      await surface.focus()
      await shifted.keyboard.press('Shift+ArrowLeft')
      await waitUntil('the moment is in the URL', () => new URL(shifted.url()).searchParams.has('at'))
      const at = Date.parse(new URL(shifted.url()).searchParams.get('at') ?? '')
      t.ok(Date.now() - at > 0 && Date.now() - at < 3_600_000, 'the link is of the last hour')
      await shifted.reload()
      await surface.waitFor()
      t.equal(Date.parse(new URL(shifted.url()).searchParams.get('at') ?? ''), at)
      await shifted.getByRole('heading', { name: /^Processes at/ }).waitFor()
      t.ok(tickets <= 2, `one ticket for each load of the page: ${tickets}`)
      problems.splice(0)
      await context.close()
    }
  })

  await t.test('without cookies and without JavaScript, a sentence says why nothing works', async (t) => {
    const blocked = await (await browser.newContext()).newPage()
    // The browser does not store the cookie of any response.
    await blocked.route('**/api/v1/sign-in/owner', async (route) => {
      const response = await route.fetch()
      const { 'set-cookie': _, ...headers } = response.headers()
      // route.fetch() has stored the cookie.
      await blocked.context().clearCookies()
      await route.fulfill({ response, headers })
    })
    await blocked.goto(`${url}/boxes/`)
    await sendSecret(blocked, dataDir)
    await blocked.getByText('The browser did not store the session. Allow cookies').waitFor()
    await blocked.context().close()

    const context = await browser.newContext({ javaScriptEnabled: false })
    await context.addCookies(await page.context().cookies())
    const still = await context.newPage()
    for (const path of ['/', `/boxes/${box.hostname}`, '/sign-in', '/desktop', '/docs']) {
      await still.goto(url + path)
      t.match(await still.locator('noscript').first().textContent(), /needs JavaScript/, path)
      t.ok(await still.locator('noscript').first().isVisible(), path)
    }
    await context.close()
  })
})
