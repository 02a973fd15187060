// The help of `box` itself: the most used commands, and all of them with `box help --all`.
import { Command, Help } from 'commander'
import { IS_NPM_PACKAGE } from '../project-directory.ts'
import { EXIT_CODE_HELP } from './exit-codes.ts'

/** In the order in which a new user needs them. */
const MOST_USED = [
  ...['up', 'login', 'create', 'ls', 'exec', 'run', 'ssh', 'cp'],
  ...['ps', 'logs', 'prompt', 'share', 'stop', 'wake', 'rm'],
]

const SHORT_HELP = `
Getting started:
  box up                         starts the coordinator in the background
  box create fig
  box exec fig uname -a
  box ssh fig                    opens a terminal, which survives disconnects
  box cp src fig:                copies a directory to the box's home directory

More help:
  box help --all                 lists all commands, exit codes and variables
  box help COMMAND               shows one command, with examples
  box docs                       lists the pages of the documentation`

const FULL_HELP = `
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

/** The programs whose help lists all commands. */
const complete = new WeakSet<Command>()

/** Prints the help of box with all commands. */
export function outputFullHelp(program: Command): void {
  complete.add(program)
  program.outputHelp()
}

/** Call it before commands are added: they copy the settings of help. */
export const configureProgramHelp = (program: Command): Command =>
  program
    .configureHelp({
      // Every command has options.
      subcommandTerm: (command) => Help.prototype.subcommandTerm(command).replace(' [options]', ''),
      formatHelp(command, helper) {
        if (command === program && !complete.has(program)) selectMostUsed(command, helper)
        return Help.prototype.formatHelp.call(helper, command, helper)
      },
    })
    .addHelpText('after', () => (complete.has(program) ? FULL_HELP : SHORT_HELP))

/** The completion still has all commands: it uses visibleCommands() of another helper. */
function selectMostUsed(program: Command, helper: Help): void {
  helper.visibleCommands = () =>
    MOST_USED.flatMap((name) => program.commands.filter((command) => command.name() === name))
  helper.groupItems = (_all, visible, getGroup) =>
    Help.prototype.groupItems.call(helper, visible, visible, (item) =>
      item instanceof Command ? 'Most used commands:' : getGroup(item as never),
    ) as never
}
