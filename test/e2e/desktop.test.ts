// The desktop of a real box with the programs of Debian, as a user sees it on the page /desktop.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import type { LiveProcess } from '../../shared/api/live-processes.ts'
import { startBrowser } from '../support/browser.ts'
import { findAgentPid } from '../support/find-agent-process.ts'
import { availableLevels } from '../support/isolation-levels.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { requires } from '../support/requires.ts'
import { waitUntil } from '../support/wait-until.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'

/** Before the first test: tap ends a file that waits between its tests. */
const levels = await availableLevels()
const missing = requires('Xvfb', 'openbox', 'x11vnc', 'xterm', 'chromium')

/** Lists the processes that a desktop has started. Those of the agent's other commands have another marker. */
const LIST_MARKED = 'grep -lz ^BOXWOOD_PROCESS_ID=desktop- /proc/[0-9]*/environ 2>/dev/null || true'

/** Of the background of a window. */
const COLOR = [0x12, 0xab, 0x34] as const
const WHITE = [0xff, 0xff, 0xff] as const

/** Counts the pixels of this colour on the canvas of noVNC, which may come from a compressed image. */
const countPixels = (page: Page, color: readonly number[]): Promise<number> =>
  page.evaluate<number>(`(() => {
    const color = ${JSON.stringify(color)}
    const canvas = document.querySelector('canvas')
    if (!canvas || canvas.width === 0) return 0
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    let count = 0
    for (let i = 0; i < data.length; i += 4)
      if (color.every((value, channel) => Math.abs(data[i + channel] - value) < 10)) count++
    return count
  })()`)

t.test('the desktop of a box in a browser', { skip: missing }, async (t) => {
  const coordinator = await startCoordinatorWithBox(t, { env: limitsEnv(HIGH_EDGE_LIMITS) })
  const { url, box, boxRequest, exec, dataDir } = coordinator
  const browser = await startBrowser(t)
  const page = await (await browser.newContext({ viewport: { width: 1000, height: 800 } })).newPage()
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('console', (message) => {
    if (/Content.Security.Policy/i.test(message.text())) problems.push(message.text())
  })
  const listNames = async () => {
    const { json } = await boxRequest('GET', '/processes')
    return json.processes
      .map(({ name }: LiveProcess) => name)
      .filter((name: string) => /Xvfb|openbox|x11vnc|xterm|chrom/i.test(name))
  }
  const readScreen = async () => {
    const screen = await page.locator('canvas').boundingBox()
    if (screen === null) throw new Error('the screen is not visible')
    return screen
  }
  const click = (name: string) => page.getByRole('button', { name, exact: true }).click()

  await t.test('the page needs a session', async (t) => {
    await page.goto(`${url}/desktop?box=${box.hostname}`)
    const secret = readFileSync(join(dataDir, 'sign-in.key'), 'utf8').trim()
    await page.getByLabel('paste the content of the file sign-in.key').fill(secret)
    await click('Sign in as the owner')
    await page.getByText('No desktop is running.').waitFor()
    t.equal(page.url(), `${url}/desktop?box=${box.hostname}`)
    t.equal(await page.locator('#missing').isVisible(), false)
  })

  await t.test('a window appears, and gets the keyboard', async (t) => {
    await click('Start desktop')
    await page.getByText('Connected.').waitFor()
    const { session } = (await boxRequest('GET', '/desktop')).json
    t.match(session, { modes: ['desktop'], width: 1280, height: 800, viewers: 1 })
    const env = { DISPLAY: session.display, XAUTHORITY: session.authority }
    t.equal(await countPixels(page, COLOR), 0)
    const script = 'until read line && [ "$line" = "Hello, 42!" ]; do :; done; printf %s "$line" >typed'
    await exec(`xterm -bg '#12ab34' -geometry 60x20+300+200 -e sh -c '${script}'`, { env, detached: true })
    await waitUntil('the window is visible', async () => (await countPixels(page, COLOR)) > 10_000)
    t.match(
      await exec('xterm -e true', { env: { DISPLAY: session.display } }),
      { exitCode: 1 },
      'needs the cookie',
    )
    await click('Use keyboard')
    const { x, y, width, height } = await readScreen()
    await waitUntil('the line was read', async () => {
      // A click into the window focuses it. The window manager may do so after the first keys.
      await page.mouse.click(x + (400 / 1280) * width, y + (300 / 800) * height)
      await page.keyboard.type('Hello, 42!', { delay: 20 })
      await page.keyboard.press('Enter')
      return (await exec('cat typed')).stdout === 'Hello, 42!'
    })
    await waitUntil('the window has closed', async () => (await countPixels(page, COLOR)) === 0)
  })

  await t.test('the keyboard returns to the page, which fits into 390 pixels', async (t) => {
    await click('Use keyboard')
    t.equal(await page.evaluate('document.activeElement.tagName'), 'CANVAS')
    await page.keyboard.press('Control+Alt+Escape')
    t.equal(await page.evaluate('document.activeElement.id'), 'focus')
    await page.setViewportSize({ width: 390, height: 800 })
    const width = await page.evaluate<number>('document.documentElement.scrollWidth')
    t.ok(width <= 390, `${width} pixels`)
    for (const name of ['Stop', 'Start browser', 'Full screen'])
      t.equal(await page.getByRole('button', { name, exact: true }).isVisible(), true, name)
    await waitUntil('the screen is scaled to the window', async () => (await readScreen()).width <= 390)
    await page.setViewportSize({ width: 1000, height: 800 })
  })

  await t.test('Chromium uses the whole screen, and ends alone', async (t) => {
    await click('Start browser')
    await waitUntil(
      'an empty page is visible',
      async () => (await countPixels(page, WHITE)) > 0.9 * 1280 * 800,
    )
    t.match((await boxRequest('GET', '/desktop')).json.session.modes, ['desktop', 'browser'])
    await click('Stop browser')
    await waitUntil(
      'the browser has ended',
      async () => !(await listNames()).some((name: string) => /chrom/i.test(name)),
    )
    const names = await listNames()
    for (const name of ['Xvfb', 'openbox', 'xterm', 'x11vnc']) t.ok(names.includes(name), name)
    await page.getByText('Connected.').waitFor()
  })

  await t.test('stop ends every process', async (t) => {
    const { status, json } = await boxRequest('POST', '/desktop/stop', {})
    t.strictSame([status, json], [200, { ok: true, box: box.hostname, mode: 'desktop' }])
    await page.getByText('No desktop is running.').waitFor()
    await waitUntil('no process is left', async () => (await listNames()).length === 0)
    const { stdout } = await exec(LIST_MARKED)
    t.equal(stdout, '')
  })
  t.same(problems, [])
})

for (const { level, skip } of levels) {
  const options = { skip: missing || skip }
  t.test(`at level ${level}, the desktop outlives its agent`, options, async (t) => {
    const env = { ...limitsEnv(HIGH_EDGE_LIMITS), BOXWOOD_LOCAL_ISOLATION: level }
    const { box, boxRequest, exec, instance } = await startCoordinatorWithBox(t, { env })
    for (const mode of ['desktop', 'browser']) {
      const { status, json } = await boxRequest('POST', '/desktop/start', { mode })
      t.match([status, json], [200, { mode, alreadyRunning: false }])
    }
    const { session } = (await boxRequest('GET', '/desktop')).json
    t.same(session.modes, ['desktop', 'browser'])
    const before = instance.context.tunnels.current(box.id)?.instanceId
    const agentPid = findAgentPid(box.id)
    if (agentPid === undefined) throw new Error('the box has no agent')
    process.kill(agentPid, 'SIGKILL')
    await waitUntil('the next agent has connected', () => {
      const { instanceId } = instance.context.tunnels.current(box.id) ?? {}
      return instanceId !== undefined && instanceId !== before
    })
    t.same((await boxRequest('GET', '/desktop')).json.session, session)
    const { DISPLAY, XAUTHORITY } = { DISPLAY: session.display, XAUTHORITY: session.authority }
    t.match(await exec('xterm -e true', { env: { DISPLAY, XAUTHORITY } }), { exitCode: 0 })
    t.equal((await boxRequest('POST', '/desktop/stop', {})).status, 200)
    const { stdout } = await exec(LIST_MARKED)
    t.equal(stdout, '', 'no process is left')
  })
}
