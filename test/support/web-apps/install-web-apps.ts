// Installs the frameworks of web applications (vite, next) for tests, in the versions of package-lock.json.
//
//   const frameworks = await installWebApps()
//   t.test('…', { skip: frameworks.skip }, async (t) => { … frameworks.nodeModules … })
//
// The first call downloads 0.4 GB into test/support/web-apps/node_modules.
import { join } from 'node:path'
import { installNpmPackages } from '../install-npm-packages.ts'
import { findPrivateDirectory } from '../private-directory.ts'

export type WebApps = {
  /** The directory with the packages. */
  nodeModules: string
  /** Why a box cannot run them; false: it can. */
  skip: string | false
}

export async function installWebApps(): Promise<WebApps> {
  const nodeModules = join(import.meta.dirname, 'node_modules')
  const dir = findPrivateDirectory(nodeModules)
  const skip =
    dir === undefined
      ? await installNpmPackages(import.meta.dirname, 'vite and next')
      : `other users cannot read ${dir}`
  return { nodeModules, skip }
}
