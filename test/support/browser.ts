// Starts Chromium for tests of the pages.
import { type Browser, chromium } from 'playwright-core'
import type { Test } from 'tap'
import { getFrontProxyName } from './front-proxy.ts'
import { findProgram, requires } from './requires.ts'
import { DEADLINE_MS } from './wait-until.ts'

/** Reason to skip tests that need a browser; false: one is installed. */
export const NO_BROWSER = requires('chromium')

/** Rejects where no browser is installed. The caller closes it. */
export async function launchBrowser(args: string[] = []): Promise<Browser> {
  const executablePath = findProgram('chromium')
  if (executablePath === undefined) throw new Error(String(NO_BROWSER))
  // The proxy of the run has a certificate that no authority has signed.
  const proxyArgs = getFrontProxyName() === undefined ? [] : ['--ignore-certificate-errors']
  // Chromium cannot use its own sandbox as root. The tests open only their own coordinator.
  const browser = await chromium.launch({
    executablePath,
    chromiumSandbox: false,
    args: [...args, ...proxyArgs],
    timeout: DEADLINE_MS,
  })
  // Also for the context of browser.newPage().
  browser.on('context', (context) => context.setDefaultTimeout(DEADLINE_MS))
  return browser
}

/** Closes the browser after the test. */
export async function startBrowser(t: Test, args: string[] = []): Promise<Browser> {
  const browser = await launchBrowser(args)
  t.teardown(() => browser.close())
  return browser
}
