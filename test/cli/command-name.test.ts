// The script `box`: starts from every directory, and messages show a command that can be pasted into a terminal.
import { execFile } from 'node:child_process'
import { copyFile, cp, mkdir, symlink } from 'node:fs/promises'
import { join, relative } from 'node:path'
import t from 'tap'
import { formatCommandName } from '../../shared/command-name.ts'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { PROJECT_DIR, START_SCRIPT } from '../support/project.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { startCliCoordinator } from './coordinator.ts'

type Result = { code: number; stdout: string; stderr: string }

/** Runs a command line in a shell, as a user in a terminal does. */
function runShell(commandLine: string, cwd: string, path: string): Promise<Result> {
  const { BOXWOOD_URL: _, BOXWOOD_API_KEY: __, BOXWOOD_DATA: ___, ...env } = process.env
  return new Promise((resolve) => {
    const options = { cwd, env: { ...env, PATH: path } }
    const child = execFile('sh', ['-c', commandLine], options, (_, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    )
  })
}

const SYSTEM_PATH = '/usr/local/bin:/usr/bin:/bin'
const root = createTempDir(t, 'command-name')
/** A copy of the project in a directory whose name has a space. It has no data directory. */
const project = join(root, 'my boxwood')
await mkdir(project)
await copyFile(join(PROJECT_DIR, 'box'), join(project, 'box'))
for (const dir of ['cli', 'client', 'shared'])
  await cp(join(PROJECT_DIR, dir), join(project, dir), { recursive: true })
await copyFile(join(PROJECT_DIR, 'package.json'), join(project, 'package.json'))

await symlink(join(PROJECT_DIR, 'node_modules'), join(project, 'node_modules'))
const emptyProject = join(root, 'without packages')
await mkdir(emptyProject)
await copyFile(join(PROJECT_DIR, 'box'), join(emptyProject, 'box'))
await mkdir(join(emptyProject, 'coordinator'))
await copyFile(join(PROJECT_DIR, START_SCRIPT), join(emptyProject, START_SCRIPT))
const elsewhere = join(root, 'elsewhere')
const bin = join(root, 'bin')
for (const dir of [elsewhere, bin]) await mkdir(dir)
await symlink(join(project, 'box'), join(bin, 'box'))

t.test('before npm ci: one line that says what to run', async (t) => {
  t.same(await runShell('./box ls', emptyProject, SYSTEM_PATH), {
    code: 1,
    stdout: '',
    stderr: `The packages of Boxwood are not installed. Run \`npm ci\` in ${emptyProject}.\n`,
  })
})

/** Runs `box ls` without a coordinator. Returns the command of the hint, without its arguments. */
async function getHintedCommand(typed: string, cwd: string, path = SYSTEM_PATH): Promise<string> {
  const { code, stderr } = await runShell(`${typed} ls`, cwd, path)
  t.equal(code, 3, stderr)
  return /Start one with `(.*) up`/.exec(stderr)?.[1] ?? stderr
}

t.test('a hint contains the command that the user typed', async (t) => {
  t.equal(await getHintedCommand('./box', project), './box')
  t.equal(await getHintedCommand("'../my boxwood/box'", elsewhere), "'../my boxwood/box'")
  t.equal(await getHintedCommand(`'${project}/box'`, elsewhere), `'${project}/box'`)
  const link = relative(elsewhere, join(bin, 'box'))
  t.equal(await getHintedCommand(link, elsewhere), link, 'a link that is not on the PATH')
})

t.test('a hint contains `box` if the PATH finds this program', async (t) => {
  const path = `${bin}:${SYSTEM_PATH}`
  for (const typed of ['box', './box', `"${project}/box"`])
    t.equal(await getHintedCommand(typed, project, path), 'box', typed)
  t.equal(await getHintedCommand('box', elsewhere, `:${path}`), 'box', 'the PATH has an empty element')
})

t.test('a hint does not contain `box` if the PATH finds another program', async (t) => {
  const otherBin = join(root, 'other-bin')
  await mkdir(otherBin)
  await copyFile('/bin/true', join(otherBin, 'box'))
  t.equal(await getHintedCommand('./box', project, `${otherBin}:${bin}:${SYSTEM_PATH}`), './box')
})

t.test('messages about errors contain the typed command', async (t) => {
  const coordinator = await startCliCoordinator(t, ['fig'])
  const settings = `BOXWOOD_URL=${coordinator.url} BOXWOOD_API_KEY=${coordinator.key}`
  const run = async (args: string) =>
    (await runShell(`${settings} ./box ${args}`, project, SYSTEM_PATH)).stderr
  t.match(await run('show plum'), 'Run `./box ls` to list boxes.')
  t.match(await run('ls --nosuch'), "See './box ls --help'.")
  t.match(await run('halt fig'), '`./box stop NAME`')
  t.match(JSON.parse(await run('show plum --json')).error.message, '`./box ls`')
  coordinator.respondNext(
    'POST /v1/box/fig/exec',
    400,
    edgeErrorBody(new ApiError('invalid_request', 'Wake it with `box wake fig`.')),
  )
  t.match(await run('exec --json fig ls'), 'Wake it with `./box wake fig`.', 'a message of the coordinator')
})

t.test('help says how to put box on the PATH, unless it is there', async (t) => {
  for (const args of ['--help', 'exec --help']) {
    const note = 'box is not on your PATH. Type ./box instead, or run `./box install`.\n'
    t.match((await runShell(`./box ${args}`, project, SYSTEM_PATH)).stdout, note)
    t.notMatch((await runShell(`box ${args}`, project, `${bin}:${SYSTEM_PATH}`)).stdout, 'PATH. Type')
  }
})

t.test('without the script: a path from the current directory', async (t) => {
  const options = { projectDir: project, path: SYSTEM_PATH }
  t.equal(formatCommandName({ ...options, cwd: project }), './box')
  t.equal(formatCommandName({ ...options, cwd: elsewhere }), `'${project}/box'`)
  t.equal(formatCommandName({ ...options, cwd: project, startedAs: 'box' }), './box', 'sh box')
  t.equal(formatCommandName({ ...options, cwd: project, program: 'boxwood' }), './boxwood')
  t.equal(formatCommandName({ ...options, cwd: project, path: undefined }), './box')
})
