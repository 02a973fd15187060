// Creates the command line of `box`: the commands, and the options and help that they share.

import { Command, Help, Option } from 'commander'
import { VERSION } from '../shared/version.ts'
import { formatPathNote } from './command-name.ts'
import { selectProfileByOption } from './connection/select-profile.ts'
import { enableTrace } from './connection/trace.ts'
import { EXIT_CODE_HELP } from './output/exit-codes.ts'
import { print } from './output/print.ts'
import { wrapHelp } from './output/wrap-help.ts'
import { IS_NPM_PACKAGE } from './project-directory.ts'
import { type Actions, registerCommands } from './register-commands.ts'

const HELP = `
Getting started:
  box up                         starts the coordinator in the background; box down stops it and the boxes
  box create fig
  box exec fig uname -a
  box exec -d fig make world     runs in the background; prints the id
  box ssh fig                    opens a terminal, which survives disconnects
  box logs -f fig ID             follows the output and reconnects when needed
  box share fig 3000             prints the address of a web server of the box
  box cp src fig:                copies a directory to the box's home directory
  box cp fig:src/out.log .
  box stop fig                   keeps the files; box start fig starts the box again
  box rm fig
  box run --rm -- make test      runs a command in a new box, then deletes the box

box uses the coordinator of a data directory on this machine: BOXWOOD_DATA, else .boxwood in the current directory, else
.boxwood in ${IS_NPM_PACKAGE ? 'your home directory' : 'the project that contains this command'}. \`box login URL\` signs in to another coordinator, \`box use\` and --profile select one. Scripts
set BOXWOOD_URL (such as http://127.0.0.1:7070) and BOXWOOD_API_KEY.
${EXIT_CODE_HELP}`

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
      writeOut: (text) => process.stdout.write(wrapHelp(text, process.stdout.columns ?? DEFAULT_COLUMNS)),
    })
    // Every command has options.
    .configureHelp({
      subcommandTerm: (command) => Help.prototype.subcommandTerm(command).replace(' [options]', ''),
    })
    .addHelpText('after', HELP)
    .addHelpText('afterAll', formatPathNote)
    .enablePositionalOptions()
    .exitOverride()
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
