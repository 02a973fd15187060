// The development servers of Vite and Next in a box: a change of a file appears in Chromium without a reload, through a link
// for each audience.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { NO_BROWSER, startBrowser } from '../../support/browser.ts'
import { PROJECT_DIR } from '../../support/project.ts'
import { LONG_DEADLINE_MS } from '../../support/wait-until.ts'
import { installWebApps } from '../../support/web-apps/install-web-apps.ts'
import { AUDIENCES, type OpenShare, startSharingBox } from './shared-app.ts'

const FIXTURES = join(PROJECT_DIR, 'test/fixtures/web-apps')
const frameworks = await installWebApps()

type Project = {
  port: number
  /** Writes the file with a message. */
  change(message: string): Promise<void>
  /** Runs in the page before the change. */
  prepare?(page: Page): Promise<unknown>
  /** Runs after the change. */
  check?(t: Test, page: Page): Promise<unknown>
}

t.test('development servers', { skip: frameworks.skip || NO_BROWSER }, async (t) => {
  // A box at this level can read the packages.
  const coordinator = await startSharingBox(t, {
    env: { BOXWOOD_LOCAL_ISOLATION: 'process', BOXWOOD_LOCAL_NETWORK: 'host' },
  })
  const browser = await startBrowser(t)

  async function copyProject(name: string): Promise<void> {
    const entries = readdirSync(join(FIXTURES, name), { recursive: true, withFileTypes: true })
    for (const entry of entries.filter((candidate) => candidate.isFile())) {
      const path = join(entry.parentPath, entry.name)
      await coordinator.run(`mkdir -p ${join(name, entry.parentPath.slice(join(FIXTURES, name).length))}`)
      await coordinator.writeFile(path.slice(FIXTURES.length + 1), readFileSync(path, 'utf8'))
    }
  }
  /** Resolves when the server has sent its first message: a change before it would be missed. */
  const openPage = (share: OpenShare) =>
    coordinator.openPage(browser, share, {
      async navigate(page) {
        // The first compilation takes most of a minute on a busy machine.
        page.setDefaultTimeout(LONG_DEADLINE_MS)
        const socket = page.waitForEvent('websocket')
        await Promise.all([socket.then((ws) => ws.waitForEvent('framereceived')), page.goto(share.url)])
      },
    })
  const waitForMessage = (page: Page, message: string) =>
    page.waitForFunction(`document.querySelector('#message')?.textContent === ${JSON.stringify(message)}`)

  async function testReload(t: Test, { port, change, prepare, check }: Project): Promise<void> {
    let message = 'first'
    for (const access of AUDIENCES)
      for (const rewriteHost of [false, true]) {
        const share = await coordinator.share({ port, access, rewriteHost })
        const page = await openPage(share)
        await waitForMessage(page, message)
        await prepare?.(page)
        await page.evaluate('window.isOriginalPage = true')
        message = `for ${access}, ${rewriteHost ? 'with' : 'without'} another Host`
        await change(message)
        await waitForMessage(page, message)
        t.equal(await page.evaluate('window.isOriginalPage'), true, `${message}: without a reload`)
        await check?.(t, page)
        await page.context().close()
        await coordinator.unshare(share)
      }
  }

  await t.test('Vite', async (t) => {
    await copyProject('vite')
    await coordinator.run(`ln -s ${frameworks.nodeModules} vite`)
    const port = await coordinator.startServer('cd vite; exec "$NODE" node_modules/vite/bin/vite.js --port 0')
    const change = (message: string) =>
      coordinator.writeFile('vite/message.js', `export const message = '${message}'\n`)
    await testReload(t, { port, change })
  })

  await t.test('Next', async (t) => {
    await copyProject('next')
    // Next needs its packages inside the project.
    await coordinator.run(`cp -r ${frameworks.nodeModules} next`)
    const port = await coordinator.startServer(
      'cd next; NEXT_TELEMETRY_DISABLED=1 exec "$NODE" node_modules/next/dist/bin/next dev -p 0',
    )
    const source = readFileSync(join(FIXTURES, 'next/app/page.jsx'), 'utf8')
    await testReload(t, {
      port,
      change: (message) =>
        coordinator.writeFile('next/app/page.jsx', source.replace("'first'", `'${message}'`)),
      // The server renders the page before React handles clicks.
      prepare: (page) =>
        page.waitForFunction(`{
          const button = document.querySelector('button')
          if (button.textContent === '0') button.click()
          button.textContent === '1'
        }`),
      check: async (t, page) => t.equal(await page.textContent('button'), '1', 'the page keeps its state'),
    })
  })
})
