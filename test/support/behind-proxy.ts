// Runs test files of pages behind nginx or Caddy with a path, where the proxy is installed.
import { readFileSync } from 'node:fs'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { Test } from 'tap'
import { CERTIFICATE, type ProxyName } from '../install/start-proxy.ts'
import { requires } from './requires.ts'

export type ProxiedFiles = {
  /** Whether axe-core runs on the pages. */
  accessibility: boolean
  /** Imports the test files, which open the pages at `pageUrl` of startTestCoordinator(). */
  importFiles(): Promise<void>
}

export async function runBehindProxy(t: Test, name: ProxyName, options: ProxiedFiles): Promise<void> {
  const skip = requires(name)
  if (skip !== false) return void t.test(`behind ${name}`, { skip }, () => undefined)
  setDefaultCACertificates([...getCACertificates('default'), readFileSync(CERTIFICATE, 'utf8')])
  process.env.BOXWOOD_TEST_PROXY = name
  if (!options.accessibility) process.env.BOXWOOD_TEST_ACCESSIBILITY = 'off'
  await options.importFiles()
}
