// box --help: the most used commands; box help --all: all commands; box help COMMAND: one of them.
import type { Command } from 'commander'
import t from 'tap'
import { createProgram } from '../../cli/program.ts'
import { runBox } from './run-box.ts'

const noAction = async () => undefined

const box = (...args: string[]) => runBox(null, args)

/** The names of the commands that a help page lists: the first words of the lines below its headings. */
const listNames = (page: string): string[] =>
  (page.split(/^Getting started:$/m)[0] ?? '')
    .split('\n')
    .flatMap((line) => /^ {2}([a-z][a-z-]*)/.exec(line)?.[1] ?? [])

t.test('the help of box has the fifteen most used commands, and says how to see all', async (t) => {
  const { code, stdout } = await box('--help')
  t.equal(code, 0)
  t.equal(listNames(stdout).length, 15)
  t.match(stdout, /^Most used commands:\n {2}up /m)
  t.match(stdout, /^ {2}box help --all /m)
  t.notMatch(stdout, /^Exit codes:/m)
  t.ok(stdout.split('\n').length < 50, 'fits on a screen')
  t.equal((await box('help')).stdout, stdout)
})

t.test('box help --all has every command in groups, the exit codes and the variables', async (t) => {
  const { code, stdout } = await box('help', '--all')
  t.equal(code, 0)
  const { commands } = await createProgram({ runAction: noAction, runLocalAction: noAction }, null)
  const isHidden = (command: Command) => ['__complete', 'ssh-proxy'].includes(command.name())
  t.same(
    listNames(stdout),
    commands.filter((command) => !isHidden(command)).map((command) => command.name()),
  )
  t.match(stdout, /^Snapshots:\n {2}fork /m)
  t.match(stdout, /^Exit codes:$/m)
  t.match(stdout, /BOXWOOD_API_KEY/)
  t.notMatch(stdout, /\b(inspect|scp)\b/, 'words of other tools are not listed')
})

t.test('box help COMMAND shows one command, or a command of a command', async (t) => {
  t.match(await box('help', 'exec'), { code: 0, stdout: /^Usage: box exec/ })
  t.match(await box('help', 'keys', 'create'), { code: 0, stdout: /^Usage: box keys create/ })
  t.match(await box('help', 'exec', 'fig'), { code: 0, stdout: /^Usage: box exec/ })
  t.match(await box('help', '--nosuch'), { code: 2, stdout: '' })
})

t.test('the completion has all commands', async (t) => {
  t.match((await box('__complete', '--', 'templ')).stdout, /^template\t.*\ntemplates\t/)
  t.match((await box('__complete', '--', 'help', 'templ')).stdout, /^template\t.*\ntemplates\t/)
  t.match((await box('__complete', '--', 'help', '-')).stdout, /^--all\t/m)
})
