// Installs the runtimes in which the client is tested, in the versions of package-lock.json: Node 20 and 22, Bun and Deno. The
// first call downloads 0.2 GB into test/support/runtimes/node_modules.
import { join } from 'node:path'
import { installNpmPackages } from '../install-npm-packages.ts'

export type Runtime = { name: string; command: string[] }

const DIR = import.meta.dirname
const MODULES = join(DIR, 'node_modules')

/** `skip`: why only the Node of the tests is there. */
export async function installRuntimes(): Promise<{ runtimes: Runtime[]; skip: string | false }> {
  const own = { name: 'node-24', command: [process.execPath] }
  if (process.arch !== 'x64') return { runtimes: [own], skip: 'the packages of the runtimes are for x64' }
  const skip = await installNpmPackages(DIR, 'Bun, Deno, and Node 20 and 22')
  if (skip !== false) return { runtimes: [own], skip }
  const others = [
    { name: 'node-20', command: [join(MODULES, 'node-20/bin/node')] },
    { name: 'node-22', command: [join(MODULES, 'node-22/bin/node')] },
    { name: 'bun', command: [join(MODULES, '.bin/bun')] },
    { name: 'deno', command: [join(MODULES, '.bin/deno'), 'run', '--allow-all'] },
  ]
  return { runtimes: [own, ...others], skip }
}
