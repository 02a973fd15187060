// Runs programs with an example of docs/integrations, as their reader would: with the package of the client and the real package
// of the other side, and with the types of both.
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { packClient } from '../../../install/package-client.ts'
import { startCoordinatorWithBox } from '../../e2e/coordinator-with-box.ts'
import { PROJECT_DIR } from '../../support/project.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { LONG_DEADLINE_MS } from '../../support/wait-until.ts'

const TSC_OPTIONS = [
  ...['--target', 'es2024', '--module', 'nodenext', '--lib', 'es2024,esnext.disposable,dom,dom.iterable'],
  ...['--strict', '--noUncheckedIndexedAccess', '--exactOptionalPropertyTypes', '--skipLibCheck'],
  ...['--erasableSyntaxOnly', '--allowImportingTsExtensions', '--noEmit', '--types', 'node'],
]

/** @param name of the file in docs/integrations @param nodeModules has the packages that it imports */
export async function setUpExample(t: Test, name: string, nodeModules: string) {
  const coordinator = await startCoordinatorWithBox(t)
  const dir = createTempDir(t, 'integration')
  const ownModules = join(dir, 'node_modules')
  const clientDir = join(ownModules, 'boxwood-client')
  mkdirSync(clientDir, { recursive: true })
  for (const entry of readdirSync(nodeModules).filter((entry) => !entry.startsWith('.')))
    symlinkSync(join(nodeModules, entry), join(ownModules, entry))
  const run = (file: string, args: string[], env = {}) =>
    promisify(execFile)('env', ['-u', 'NODE_OPTIONS', file, ...args], {
      cwd: dir,
      env: { ...process.env, ...env },
      timeout: LONG_DEADLINE_MS,
    }).catch((error) => Promise.reject(new Error(`${file}: ${error.stdout}${error.stderr}`)))
  const tarball = await packClient(dir)
  await run('tar', ['-xzf', tarball, '-C', clientDir, '--strip-components=1'])
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}')
  copyFileSync(join(PROJECT_DIR, 'docs/integrations', name), join(dir, name))
  return {
    ...coordinator,
    /** Checks the types of the program and the example, runs it, and returns the JSON that it prints. */
    async runProgram(source: string) {
      writeFileSync(join(dir, 'program.ts'), source)
      await run(join(PROJECT_DIR, 'node_modules/.bin/tsc'), [...TSC_OPTIONS, 'program.ts'])
      const env = {
        BOXWOOD_URL: coordinator.url,
        BOXWOOD_API_KEY: coordinator.key,
        BOX: coordinator.box.hostname,
      }
      const { stdout } = await run(process.execPath, ['program.ts'], env)
      return JSON.parse(stdout)
    },
  }
}
