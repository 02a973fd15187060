// Creates the command line of `box`: the commands, and the options and help that they share.

import { Command, Option } from 'commander'
import { VERSION } from '../shared/version.ts'
import { formatPathNote } from './command-name.ts'
import { selectProfileByOption } from './connection/select-profile.ts'
import { enableTrace } from './connection/trace.ts'
import { print } from './output/print.ts'
import { configureProgramHelp } from './output/program-help.ts'
import { wrapHelp } from './output/wrap-help.ts'
import { type Actions, registerCommands } from './register-commands.ts'

/** The width of help pages when stdout is not a terminal. */
const DEFAULT_COLUMNS = 80

const listCommands = (parent: Command): Command[] =>
  parent.commands.flatMap((command) => [command, ...listCommands(command)])

/** @param names of the commands that are needed; null: all */
export async function createProgram(actions: Actions, names: readonly string[] | null): Promise<Command> {
  // Subcommands copy the settings of help, output and exit when they are added: set these first.
  const program = new Command('box')
    .description('Boxes: Linux machines for people and coding agents.')
    .version(
      VERSION,
      '-v, --version',
      'show the version of box; box version also shows that of the coordinator',
    )
    .addOption(new Option('-V').hideHelp())
    .on('option:V', () => {
      print(VERSION)
      process.exit()
    })
    .helpOption('-h, --help', 'show help')
    // output/report-error.ts prints the errors.
    .configureOutput({
      outputError: () => undefined,
      writeOut: (text) => process.stdout.write(wrapHelp(text, process.stdout.columns || DEFAULT_COLUMNS)),
    })
    .enablePositionalOptions()
    // commands/help.ts has the command.
    .helpCommand(false)
    .exitOverride()
  configureProgramHelp(program).addHelpText('afterAll', formatPathNote)
  await registerCommands(program, actions, names)
  program.option('--verbose', 'print each request on stderr').on('option:verbose', enableTrace)
  program
    .option('--profile <profile>', 'use the coordinator and the credentials of this profile')
    .on('option:profile', selectProfileByOption)
  for (const command of listCommands(program))
    command
      .addOption(new Option('--verbose').hideHelp())
      .on('option:verbose', enableTrace)
      .addOption(new Option('--profile <profile>').hideHelp())
      .on('option:profile', selectProfileByOption)
  return program
}
