// box help: shows the help of box, or of a command.
import type { Command } from 'commander'
import type { RunLocalAction } from '../connection/session.ts'
import { findCommand } from '../output/print-error.ts'
import { outputFullHelp } from '../output/program-help.ts'

export function addHelpCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('help')
    .summary('show help for a command, or all commands')
    .description(
      'Shows the help of box, or of a command. `box help` lists the most used commands, `box help --all` all commands, the exit ' +
        'codes and the variables.',
    )
    .argument('[command...]', 'the command, such as exec or keys create')
    .option('--all', 'list all commands')
    .addHelpText('after', '\nExamples:\n  box help --all\n  box help exec\n  box help keys create')
    .action((words: string[], { all = false }: { all?: boolean }) =>
      runLocalAction(async () => {
        if (words.length === 0 && all) outputFullHelp(program)
        else findNested(program, words).outputHelp()
        return undefined
      }),
    )
}

/** The command that the words name. Words after the last command are ignored, as in `box help exec fig`. */
function findNested(parent: Command, [word, ...rest]: readonly string[]): Command {
  const command = findCommand(parent, word)
  return command === undefined ? parent : findNested(command, rest)
}
