// The npm package: contains everything that a coordinator and its boxes need, as JavaScript.
import { type ExecFileOptions, execFile } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { PROJECT_DIR } from '../support/project.ts'
import { stopDataDirectory } from '../support/stop-data-directory.ts'
import { createTempDir } from '../support/temp-dir.ts'

t.setTimeout(240_000)

/** Without NODE_OPTIONS, in which tap adds a hook to each child process: tsc does not work with this hook. */
const run = (file: string, args: string[], options: ExecFileOptions = {}) =>
  promisify(execFile)('env', ['-u', 'NODE_OPTIONS', file, ...args], { ...options, encoding: 'utf8' })

t.test('box works as npm installs it', async (t) => {
  const root = createTempDir(t, 'npm-package')
  const home = join(root, 'home')
  const modules = join(root, 'lib/node_modules')
  for (const dir of [home, modules]) mkdirSync(dir, { recursive: true })
  await run('npm', ['run', '-s', 'package', root], { cwd: PROJECT_DIR })
  const [tarball = ''] = readdirSync(root).filter((name) => name.endsWith('.tgz'))
  t.match(tarball, /^boxwood-server-\d+\.\d+\.\d+\.tgz$/)
  await run('tar', ['-xzf', join(root, tarball), '-C', modules])
  const packageDir = join(modules, 'boxwood-server')
  await run('mv', [join(modules, 'package'), packageDir])
  // Instead of downloading the dependencies.
  symlinkSync(join(PROJECT_DIR, 'node_modules'), join(packageDir, 'node_modules'))

  const { BOXWOOD_URL: _, BOXWOOD_API_KEY: __, BOXWOOD_DATA: ___, ...inheritedEnv } = process.env
  const env = { ...inheritedEnv, HOME: home, BOXWOOD_LISTEN: '127.0.0.1:0' }
  const box = async (...args: string[]) =>
    (await run(join(packageDir, 'box'), args, { cwd: home, env })).stdout
  const dataDir = join(home, '.boxwood')
  t.teardown(() => stopDataDirectory(dataDir))
  t.match(await box('up'), `The owner's API key is in ${dataDir}/owner.key.`, 'npm does not delete the data')
  const name = (await box('ls', '-q')).trim()
  t.equal(await box('exec', name, '--', 'echo', 'hello'), 'hello\n')
  t.match(await box('version'), /^coordinator +\d/m)
  t.match(await box('docs'), /docs cli/)
  const { checks } = JSON.parse(await box('doctor', '--json'))
  t.same(
    checks.filter(({ status }: { status: string }) => status === 'fail'),
    [],
  )
  await t.rejects(box('install'), { message: /npm has installed this program.*on the PATH already/ })
  t.match(await box('down'), 'are stopped')
})

t.test('npm pack in the project refuses: the package would contain TypeScript', async (t) => {
  const options = { cwd: PROJECT_DIR, env: { ...process.env, npm_config_dry_run: 'true' } }
  await t.rejects(run('npm', ['pack'], options), { message: /Run `npm run package`/ })
})
