// The npm package: contains everything that a coordinator and its boxes need, as JavaScript, and is installed from its file.
import { type ExecFileOptions, execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import t, { type Test } from 'tap'
import { VERSION } from '../../shared/version.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { stopDataDirectory } from '../support/stop-data-directory.ts'
import { createTempDir } from '../support/temp-dir.ts'

/** Errors of npm when it cannot download packages. */
const OFFLINE = /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENOTCACHED|ENETUNREACH)\b/

/** Without NODE_OPTIONS, in which tap adds a hook to each child process: tsc does not work with this hook. */
const run = (file: string, args: string[], options: ExecFileOptions = {}) =>
  promisify(execFile)('env', ['-u', 'NODE_OPTIONS', file, ...args], { ...options, encoding: 'utf8' })

/** Packs the project and installs the file with npm, from an empty directory with an empty prefix. */
async function installGlobally(t: Test, root: string): Promise<string> {
  const [empty, prefix] = [join(root, 'empty'), join(root, 'prefix')]
  for (const dir of [empty, prefix]) mkdirSync(dir)
  await run('npm', ['run', '-s', 'package', root], { cwd: PROJECT_DIR })
  const [tarball = ''] = readdirSync(root).filter(
    (name) => name.startsWith('boxwood-server') && name.endsWith('.tgz'),
  )
  t.equal(tarball, `boxwood-server-${VERSION}.tgz`)
  await run('sha256sum', ['--check', `${tarball}.sha256`], { cwd: root })
  const options = ['--prefix', prefix, '--prefer-offline', '--no-audit', '--no-update-notifier']
  try {
    await run('npm', ['install', '--global', ...options, join(root, tarball)], { cwd: empty })
  } catch (error) {
    if (!OFFLINE.test((error as Error).message)) throw error
    t.comment('npm cannot download packages: the test uses those of the project')
    const modules = join(prefix, 'lib/node_modules')
    mkdirSync(join(prefix, 'bin'), { recursive: true })
    mkdirSync(modules, { recursive: true })
    await run('tar', ['-xzf', join(root, tarball), '-C', modules])
    await run('mv', [join(modules, 'package'), join(modules, 'boxwood-server')])
    symlinkSync(join(PROJECT_DIR, 'node_modules'), join(modules, 'boxwood-server/node_modules'))
    for (const name of ['box', 'boxwood'])
      symlinkSync(`../lib/node_modules/boxwood-server/${name}`, join(prefix, 'bin', name))
  }
  t.same(readdirSync(empty), [], 'npm writes nothing into the current directory')
  t.same(readdirSync(join(prefix, 'bin')).sort(), ['box', 'boxwood'], 'the commands')
  return prefix
}

async function listTools(command: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(
    new StdioClientTransport({ command, args: ['mcp'], env: env as Record<string, string> }),
  )
  const { tools } = await client.listTools()
  await client.close()
  return tools.map(({ name }) => name)
}

const { BOXWOOD_URL: _, BOXWOOD_API_KEY: __, BOXWOOD_DATA: ___, ...inheritedEnv } = process.env

t.test('box and boxwood work as npm installs them', async (t) => {
  const root = createTempDir(t, 'npm-package')
  const home = join(root, 'home')
  mkdirSync(home)
  const bin = join(await installGlobally(t, root), 'bin')
  const env = { ...inheritedEnv, HOME: home, BOXWOOD_LISTEN: '127.0.0.1:0' }
  const command =
    (name: string, moreEnv: Record<string, string> = {}) =>
    async (...args: string[]) =>
      (await run(join(bin, name), args, { cwd: home, env: { ...env, ...moreEnv } })).stdout
  const [box, boxwood] = [command('box'), command('boxwood')]
  const dataDir = join(home, '.boxwood')
  t.teardown(() => stopDataDirectory(dataDir))
  t.equal(await boxwood('--version'), `${VERSION}\n`)
  t.match(await boxwood('--help'), /backup .*\n.*restore /s)
  await t.rejects(boxwood('unknown'), { code: 2, stderr: /unknown command/ })

  const started = await box('up')
  t.match(started, `The owner's API key is in ${dataDir}/owner.key.`, 'npm does not delete the data')
  t.match(started, `${bin}/box down`, 'the hint is a command that works')
  t.match(readFileSync(join(dataDir, 'coordinator.log'), 'utf8'), 'put the bin directory of `npm prefix -g`')
  const name = (await box('ls', '-q')).trim()

  const { url } = JSON.parse(readFileSync(join(dataDir, 'coordinator.json'), 'utf8'))
  const page = await fetch(`${url}/boxes/${name}`, { headers: { accept: 'text/html' } })
  t.equal(page.status, 200, 'the dashboard')
  const [, script] = / src="(dashboard\/app-\w+\.js)"/.exec(await page.text()) ?? []
  t.equal((await fetch(`${url}/${script}`)).status, 200)
  const tools = await listTools(join(bin, 'box'), { ...env, BOXWOOD_DATA: dataDir })
  t.ok(tools.includes('run_command'), 'box mcp')
  const installed = join(bin, '../lib/node_modules/boxwood-server')
  t.notOk(existsSync(join(dataDir, 'dashboard-bundle')), 'the dashboard was not built')
  t.notOk(existsSync(join(installed, 'node_modules/.cache/boxwood/dashboard')), 'the dashboard was not built')
  t.notOk(existsSync(join(installed, 'dashboard/app.tsx')))

  t.equal(await box('exec', name, '--', 'echo', 'hello'), 'hello\n')
  t.match(await box('version'), /^coordinator +\d/m)
  t.match(await box('docs'), /docs cli/)
  t.match(await box('docs', 'install'), /^# Install and run a coordinator\n/)
  // The length of the path of the command decides where the lines are wrapped.
  const help = (await box('--help')).replaceAll(/\s+/g, ' ')
  t.match(help, 'put the bin directory of `npm prefix -g` first on your PATH')
  const { checks } = JSON.parse(await box('doctor', '--json'))
  t.same(
    checks.filter(({ status }: { status: string }) => status === 'fail'),
    [],
  )
  await t.rejects(box('install'), { message: /npm has installed this program.*on the PATH already/ })

  await box('exec', name, '--', 'sh', '-c', 'echo kept >file')
  const file = join(home, 'boxwood.tar')
  t.match(await boxwood('backup', file), /^Wrote .*boxwood\.tar .* the files of 1 box\./)
  t.match(await box('upgrade'), /^Boxwood runs in the background at /)
  t.match(await box('backup', '--without-boxes', join(home, 'second.tar')), /^Wrote .*second\.tar /)
  t.match(await box('down'), 'are stopped')

  const otherDir = join(root, 'other')
  const onOther = { BOXWOOD_DATA: otherDir }
  t.teardown(() => stopDataDirectory(otherDir))
  t.match(await command('boxwood', onOther)('restore', file), `to ${otherDir}. Start the coordinator`)
  await command('box', onOther)('up')
  t.equal(await command('box', onOther)('exec', name, '--', 'cat', 'file'), 'kept\n')
  await command('box', onOther)('down')
})

t.test('without Node in the package, both commands print what to do', async (t) => {
  const dir = join(createTempDir(t, 'no-node'), 'node_modules/boxwood-server')
  mkdirSync(join(dir, 'coordinator'), { recursive: true })
  for (const file of ['box', 'boxwood', 'coordinator/start.sh'])
    await run('cp', [join(PROJECT_DIR, file), join(dir, file)])
  for (const name of ['box', 'boxwood'])
    for (const args of [[], ['--version']])
      await t.rejects(run(join(dir, name), args), {
        code: 1,
        stderr: /packages of Boxwood are not complete.*`npm install -g --include=optional FILE`/,
      })
})

t.test('npm pack in the project refuses: the package would contain TypeScript', async (t) => {
  const options = { cwd: PROJECT_DIR, env: { ...process.env, npm_config_dry_run: 'true' } }
  await t.rejects(run('npm', ['pack'], options), { message: /Run `npm run package`/ })
})
