// Copies the npm package with its dependencies into a directory, as `npm install -g` does, without a network.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PROJECT_DIR } from '../support/project.ts'

type Lock = { packages: Record<string, { dev?: boolean }> }

/** Creates bin/box, bin/boxwood and lib/node_modules/boxwood-server in the prefix. @param tempDir for the .tgz file */
export function installInto(prefix: string, tempDir: string): void {
  // tap adds NODE_OPTIONS with a hook to each child process: tsc does not work with it.
  const command = ['-u', 'NODE_OPTIONS', 'npm', 'run', '-s', 'package', tempDir]
  execFileSync('env', command, { cwd: PROJECT_DIR, stdio: 'ignore' })
  const tarball = readdirSync(tempDir).find((name) => /^boxwood-server-.*\.tgz$/.test(name)) ?? ''
  const packageDir = join(prefix, 'lib/node_modules/boxwood-server')
  mkdirSync(packageDir, { recursive: true })
  execFileSync('tar', ['-xzf', join(tempDir, tarball), '-C', packageDir, '--strip-components=1'])
  // npm would also compile the native parts where there is a C compiler.
  const { packages } = JSON.parse(readFileSync(join(PROJECT_DIR, 'package-lock.json'), 'utf8')) as Lock
  for (const [path, { dev = false }] of Object.entries(packages)) {
    // Nested packages are in the directories of others.
    if (dev || !/^node_modules\/(@[^/]+\/)?[^/]+$/.test(path)) continue
    const target = join(packageDir, path)
    mkdirSync(dirname(target), { recursive: true })
    try {
      cpSync(join(PROJECT_DIR, path), target, { recursive: true, verbatimSymlinks: true })
    } catch (error) {
      // An optional package for another platform.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  mkdirSync(join(packageDir, 'node_modules/.bin'), { recursive: true })
  symlinkSync('../node/bin/node', join(packageDir, 'node_modules/.bin/node'))
  mkdirSync(join(prefix, 'bin'), { recursive: true })
  for (const name of ['box', 'boxwood'])
    symlinkSync(`../lib/node_modules/boxwood-server/${name}`, join(prefix, 'bin', name))
}
