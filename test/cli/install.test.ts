// box install and box uninstall: the link on the PATH, the completion files, and the lines for the startup files.
import { execFile } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { getDefaultDir } from '../../cli/install/link.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { runBox } from './run-box.ts'

const SYSTEM_PATH = '/usr/local/bin:/usr/bin:/bin'
const SCRIPT = join(PROJECT_DIR, 'box')

function createHome(t: Test) {
  const home = createTempDir(t, 'install')
  const bin = join(home, '.local/bin')
  const env = { HOME: home, SHELL: '/bin/bash', PATH: SYSTEM_PATH, XDG_DATA_HOME: '', XDG_CONFIG_HOME: '' }
  const box = (args: string[], extraEnv: Record<string, string> = {}) =>
    runBox(null, args, { env: { ...env, ...extraEnv } })
  return { home, bin, env, box, install: (...args: string[]) => box(['install', '--dir', bin, ...args]) }
}

t.test('puts box on the PATH, and removes it again', async (t) => {
  const { home, bin, env, box, install } = createHome(t)
  mkdirSync(join(home, '.local/share/bash-completion'), { recursive: true })
  mkdirSync(join(home, '.config/fish'), { recursive: true })
  const { code, stdout } = await install()
  t.equal(code, 0)
  t.match(stdout, `${bin}/box is now a link to ${SCRIPT}.\n${bin}/boxwood is now a link to ${SCRIPT}wood.\n`)
  t.match(
    stdout,
    `Add this line to ~/.bashrc and start a new shell:\n  export PATH="$HOME/.local/bin:$PATH"\n`,
  )
  const line = /^ {2}(export .*)$/m.exec(stdout)?.[1]
  const { stdout: help } = await promisify(execFile)('sh', ['-c', `${line}; cd /; box --help`], { env })
  t.match(help, /^Usage: box/, 'after the printed line the shell finds box')
  const { stdout: boxwood } = await promisify(execFile)('sh', ['-c', `${line}; cd /; boxwood --help`], {
    env,
  })
  t.match(boxwood, /^Usage: boxwood/, 'and boxwood')

  const path = { PATH: `${bin}:${SYSTEM_PATH}` }
  const again = await box(['install', '--dir', bin], path)
  t.match(again, { code: 0, stdout: `${bin}/box is already a link to ${SCRIPT}.\n${bin}/boxwood is already` })
  t.notMatch(again.stdout, /Add this line|add this line/)
  const files = ['.local/share/bash-completion/completions/box', '.config/fish/completions/box.fish']
  for (const file of files) t.match(readFileSync(join(home, file), 'utf8'), /__complete/, file)

  mkdirSync(join(home, '.config/boxwood'), { recursive: true })
  const loop = join(home, 'loop')
  symlinkSync(loop, loop)
  t.match(await box(['uninstall'], { PATH: `${loop}:${path.PATH}` }), {
    code: 0,
    stdout: new RegExp(`^Kept ${join(home, '.config/boxwood')}: your sign-ins .*\nKept `, 'm'),
  })
  for (const file of ['.local/bin/box', '.local/bin/boxwood', ...files])
    t.notOk(existsSync(join(home, file)), file)
  t.match(await box(['uninstall'], path), { code: 0, stdout: /^Nothing is installed/ })
})

t.test('keeps another program of this name, unless --force is given', async (t) => {
  const { bin, home, box, install } = createHome(t)
  mkdirSync(bin, { recursive: true })
  const path = join(bin, 'box')
  writeFileSync(path, 'another program')
  t.match(await install(), {
    code: 1,
    stderr: `box: ${path} exists and is another program. Replace it with --force`,
  })
  t.match(await box(['uninstall', '--dir', bin]), { code: 0, stdout: /^Nothing is installed/ })
  t.equal(readFileSync(path, 'utf8'), 'another program')
  t.match(await install('--force'), { code: 0 })
  t.equal(lstatSync(path).isSymbolicLink(), true)

  const otherBin = join(home, 'other')
  mkdirSync(join(otherBin, 'box'), { recursive: true })
  t.match(await box(['install', '--force', '--dir', otherBin]), {
    code: 1,
    stderr: /is a directory\. Use --dir/,
  })
  const linkBin = join(home, 'link')
  mkdirSync(linkBin)
  symlinkSync('/bin/true', join(linkBin, 'box'))
  t.match(await box(['install', '--dir', linkBin]), { code: 1, stderr: /is a link to \/\S*true\. Replace/ })
})

t.test('replaces the link of a Boxwood that was deleted', async (t) => {
  const { bin, install } = createHome(t)
  mkdirSync(bin, { recursive: true })
  symlinkSync('/nonexistent/cli/box.sh', join(bin, 'box'))
  t.match(await install(), { code: 0, stdout: /is now a link/ })
})

t.test('reports another box that the PATH finds first', async (t) => {
  const { home, bin, box } = createHome(t)
  const otherBin = join(home, 'other')
  mkdirSync(otherBin)
  writeFileSync(join(otherBin, 'box'), '', { mode: 0o755 })
  const { stdout } = await box(['install', '--dir', bin], { PATH: `${otherBin}:${bin}:${SYSTEM_PATH}` })
  t.match(stdout, `Your PATH finds ${otherBin}/box first.`)
})

t.test('prints the lines for the shell of the user', async (t) => {
  const { bin, box } = createHome(t)
  const install = (shell: string) => box(['install', '--dir', bin], { SHELL: `/usr/bin/${shell}` })
  t.match(
    (await install('zsh')).stdout,
    /~\/\.zshrc.*export PATH=.*~\/\.zshrc:\n {2}source <\(box completion zsh\)/s,
  )
  t.match((await install('fish')).stdout, `  fish_add_path ${bin}\n`)
  t.match((await install('dash')).stdout, '~/.profile')
})

t.test('--json', async (t) => {
  const { bin, box } = createHome(t)
  const installed = await box(['install', '--dir', bin, '--json'], { PATH: bin })
  t.match(JSON.parse(installed.stdout), { link: join(bin, 'box'), target: SCRIPT, onPath: true })
  const removed = await box(['uninstall', '--dir', bin, '--json'])
  const { removed: paths, kept } = JSON.parse(removed.stdout)
  t.ok(paths.includes(join(bin, 'box')))
  t.ok(kept.includes(resolve(PROJECT_DIR)))
})

t.test('reports a directory in which it cannot create the link', async (t) => {
  const { home, box } = createHome(t)
  writeFileSync(join(home, 'file'), '')
  t.match(await box(['install', '--dir', join(home, 'file/bin')]), {
    code: 1,
    stderr: /^box: Cannot create .*\/file\/bin\/box: .*Use --dir/,
  })
})

t.test('the default directory', (t) => {
  const { home } = createHome(t)
  const { getuid } = process
  const { HOME, PATH } = process.env
  t.teardown(() => {
    Object.assign(process, { getuid })
    Object.assign(process.env, { HOME, PATH })
  })
  const getDefault = (uid: number, path: string) => {
    Object.assign(process, { getuid: () => uid })
    Object.assign(process.env, { HOME: home, PATH: path })
    return getDefaultDir()
  }
  for (const dir of ['bin', 'node_modules/.bin']) mkdirSync(join(home, dir), { recursive: true })
  t.equal(getDefault(0, SYSTEM_PATH), '/usr/local/bin')
  t.equal(getDefault(1000, SYSTEM_PATH), `${home}/.local/bin`)
  t.equal(getDefault(1000, `${home}/bin:${home}/.local/bin/:${SYSTEM_PATH}`), `${home}/.local/bin`)
  t.equal(getDefault(1000, `${home}/none:${home}/node_modules/.bin:${home}/bin:/bin`), `${home}/bin`)
  t.end()
})
