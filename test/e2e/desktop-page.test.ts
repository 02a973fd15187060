// The page /desktop in a real browser, with an agent in memory: what it shows without a running desktop. desktop.test.ts has a
// real one.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page, WebSocketRoute } from 'playwright-core'
import t from 'tap'
import { ApiError } from '../../shared/errors.ts'
import { startBoxWithFakeAgent } from '../support/box-with-fake-agent.ts'
import { NO_BROWSER, startBrowser } from '../support/browser.ts'
import { createFakeDesktopAgent } from '../support/fake-desktop-agent.ts'
import { limitsEnv } from '../support/limits-env.ts'

/** noVNC reads the names of the members from the prototype, which has none in the WebSocket of Playwright. */
const SHOW_MEMBERS = `{
  const { prototype } = WebSocket
  const { constructor, ...members } = Object.getOwnPropertyDescriptors(Object.getPrototypeOf(prototype))
  Object.defineProperties(prototype, members)
}`

/** A VNC server without updates of its screen. */
function serveEmptyScreen(connection: WebSocketRoute): void {
  const size = Buffer.from([0, 64, 0, 64])
  const pixelFormat = Buffer.from([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0])
  const responses = [
    Buffer.from([1, 1]),
    Buffer.from([0, 0, 0, 0]),
    Buffer.concat([size, pixelFormat, Buffer.from([0, 0, 0, 0])]),
  ]
  connection.onMessage(() => {
    const response = responses.shift()
    if (response !== undefined) connection.send(response)
  })
  connection.send(Buffer.from('RFB 003.008\n'))
}

t.test('in a browser', { skip: NO_BROWSER }, async (t) => {
  const agent = createFakeDesktopAgent()
  const coordinator = await startBoxWithFakeAgent(t, agent.handler, {
    env: limitsEnv({ edgeRequestsPerSecond: 1000 }),
  })
  const { url, api, box, dataDir } = coordinator
  const browser = await startBrowser(t)
  const problems: string[] = []

  const viewport = { width: 390, height: 700 }
  const signedIn = await browser.newContext({ viewport })

  async function open(path: string, context = signedIn): Promise<Page> {
    const page = await context.newPage()
    page.on('pageerror', (error) => problems.push(error.message))
    page.on('console', (message) => {
      if (/Content.Security.Policy/i.test(message.text())) problems.push(message.text())
    })
    await page.goto(url + path)
    return page
  }

  await t.test('signs the owner in', async () => {
    const page = await open('/sign-in')
    const secret = readFileSync(join(dataDir, 'sign-in.key'), 'utf8').trim()
    await page.getByLabel('paste the content of the file sign-in.key').fill(secret)
    await page.getByRole('button', { name: 'Sign in as the owner' }).click()
    await page.getByRole('heading', { name: 'Boxes' }).waitFor()
  })

  const path = `/desktop?box=${box.hostname}`
  const listButtons = (page: Page) => page.locator('#controls button:visible').allTextContents()

  await t.test('without a session, the sign-in page continues at the desktop', async (t) => {
    const page = await open(path, await browser.newContext({ viewport }))
    await page.getByRole('heading', { name: 'Sign in to Boxwood' }).waitFor()
    t.equal(page.url(), `${url}/sign-in?next=${encodeURIComponent(path)}`)
  })

  await t.test('an unknown box, and no box', async () => {
    await (await open('/desktop?box=none')).getByText('There is no box none in this workspace.').waitFor()
    await (await open('/desktop')).getByText('Add ?box= and its name.').waitFor()
  })

  await t.test('a name is inserted as text', async (t) => {
    const page = await open(`/desktop?box=${encodeURIComponent('<img src=x onerror=alert(1)>')}`)
    await page.getByText('There is no box <img').waitFor()
    t.equal(await page.locator('img').count(), 0)
  })

  await t.test('names the missing programs, and the line that installs them', async (t) => {
    const installed = agent.state.programs
    agent.state.programs = installed.map((entry) =>
      entry.role === 'display' || entry.role === 'browser' ? { ...entry, program: null } : entry,
    )
    const page = await open(path)
    await page.getByText('The box lacks programs of the desktop: xvfb, chromium.').waitFor()
    t.match(await page.locator('#missing').textContent(), /as root on the machine of the coordinator/)
    t.equal(
      await page.locator('#missing pre').textContent(),
      'apt-get install -y --no-install-recommends xvfb\n' +
        'apt-get install -y --no-install-recommends xvfb chromium fonts-dejavu-core',
    )
    const width = await page.evaluate<number>('document.documentElement.scrollWidth')
    t.ok(width <= 390, `${width} pixels`)
    agent.state.programs = installed
  })

  await t.test('a start that fails shows the message, and the buttons work again', async (t) => {
    const page = await open(path)
    await page.getByText('No desktop is running.').waitFor()
    t.same(await listButtons(page), ['Start desktop', 'Start browser'])
    agent.state.failure = new ApiError('exec_failed', 'Xvfb did not start: no memory')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').filter({ hasText: 'Xvfb did not start: no memory' }).waitFor()
    agent.state.failure = null
    t.equal(await page.getByRole('button', { name: 'Start desktop' }).isEnabled(), true)
    t.equal(await page.evaluate('document.activeElement.id'), 'start-desktop', 'the focus stays')
  })

  await t.test('a suspended box is woken only by a start', async (t) => {
    await api('POST', `/boxes/${box.id}/suspend`)
    await coordinator.waitForState(box.id, 'suspended')
    const page = await open(path)
    await page.getByText('The box is suspended. A start wakes it.').waitFor()
    t.equal((await coordinator.waitForState(box.id, 'suspended')).desiredState, 'suspended')
    t.same(await listButtons(page), ['Start desktop', 'Start browser'])
    await page.getByRole('button', { name: 'Start browser' }).click()
    await coordinator.waitForState(box.id, 'running')
    // The agent in memory opens no dial-back connection.
    await page.getByRole('button', { name: 'Stop', exact: true }).waitFor()
    t.match(
      agent.requests.find((request) => request.path === '/desktop/start' && request.body.mode === 'browser'),
      {
        method: 'POST',
      },
    )
  })

  await t.test('connects again after a restart of the coordinator', async () => {
    const page = await signedIn.newPage()
    await page.clock.install()
    const connections: WebSocketRoute[] = []
    await page.routeWebSocket('**/desktop/stream', (connection) => {
      connections.push(connection)
      serveEmptyScreen(connection)
    })
    await page.addInitScript(SHOW_MEMBERS)
    await page.goto(url + path)
    await page.getByText('Connected.').waitFor()
    await page.clock.fastForward(11_000)
    await page.route('**/v1/**', (route) => route.abort())
    await connections[0]?.close()
    await page.getByText('Waiting for the coordinator').waitFor()
    await page.unroute('**/v1/**')
    await page.clock.fastForward(2000)
    await page.getByText('Connected.').waitFor()
  })

  await t.test('the page of the box leads to the desktop', async (t) => {
    const page = await open(`/boxes/${box.hostname}`)
    await page.getByRole('link', { name: 'Desktop' }).click()
    await page.getByRole('heading', { name: `Desktop ${box.hostname}` }).waitFor()
    t.equal(page.url(), url + path)
  })
  t.same(problems, [])
})
