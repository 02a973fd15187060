// A terminal of the dashboard that prints 1 GiB.
import t from 'tap'
import { NO_BROWSER, startBrowser } from '../../support/browser.ts'
import { signIn } from '../../support/dashboard.ts'
import { startProxiedCoordinator } from '../../support/proxied-coordinator.ts'
import { testTerminalFlood } from '../../support/terminal-flood.ts'

t.test('a terminal prints 1 GiB', { skip: NO_BROWSER }, async (t) => {
  const { coordinator, clientProxy, box } = await startProxiedCoordinator(t)
  await coordinator.waitForState(box.id, 'running')
  const context = await (await startBrowser(t)).newContext()
  const page = await context.newPage()
  const base = `${clientProxy.url}/boxes/${box.hostname}`
  await page.goto(base)
  await signIn(page, coordinator.dataDir)
  await page.getByRole('heading', { level: 1 }).waitFor()
  const { pid } = coordinator
  await testTerminalFlood(t, { context, base, pid, bytes: 1024 ** 3 })
})
