// A command line loads the modules of its own command only; the names in the table are those of the commands.
import type { Command } from 'commander'
import t from 'tap'
import { listNeededCommands } from '../../cli/arguments/command-line.ts'
import { createProgram } from '../../cli/program.ts'
import { isCommandName } from '../../cli/register-commands.ts'

const noAction = async () => undefined
const actions = { runAction: noAction, runLocalAction: noAction }

const listNames = (command: Command): string[] => [command.name(), ...command.aliases()]

t.test('each command is registered alone by its name and by its aliases', async (t) => {
  const { commands } = await createProgram(actions, null)
  t.ok(commands.length > 50, `${commands.length} commands`)
  for (const name of commands.flatMap(listNames)) {
    t.ok(isCommandName(name), name)
    const alone = (await createProgram(actions, [name])).commands
    t.ok(alone.flatMap(listNames).includes(name), name)
    // box install and box uninstall share a module.
    t.ok(alone.length <= 2, `with ${name}: ${alone.length} commands`)
  }
})

t.test('the commands that a command line needs', async (t) => {
  const list = (...words: string[]) => listNeededCommands(words, isCommandName)
  t.same(list('exec', 'fig', 'ls'), ['exec'])
  t.same(list('__complete', '--', 'exec', 'f'), ['__complete', 'exec'])
  t.same(list('__complete', '--', '--profile', 'work', 'snapshot', 'rm', ''), ['__complete', 'snapshots'])
  t.same(list('__complete', '--', 'exe'), null, 'all, to complete the name')
  t.same(list('__complete', '--', 'help', 'exe'), null)
  t.same(list('__complete', '--'), null)
  t.same(list('help', 'exec'), null, 'all, for the list of the commands')
  t.same(list('nosuch'), null, 'all, to suggest a name')
  t.same(list(), null)
  t.same(list('--version'), [], 'none, to print the version')
})
